// Events of a Chrome trace as columns.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scanner.h"
#include "texts.h"

namespace devprof::json {

// What a value is. The same numbers are in json_library.py.
enum Kind : int32_t { kInt = 0, kFloat = 1, kBool = 2, kText = 3, kRaw = 4, kNull = 5, kKinds = 6 };

// Whether an event has a time; an odd one is read in Python.
enum State : uint8_t { kNone = 0, kSound = 1, kOdd = 2 };

// A value that fits a number: whole numbers and truth values as they are, floats as their bits, texts as their numbers.
struct Value {
  int32_t kind = kNull;
  int64_t number = 0;
};

// Values of one kind under one key.
struct ArgColumn {
  int32_t key;
  int32_t kind;
  std::vector<int32_t> events;
  std::vector<int64_t> values;
};

struct Track {
  int32_t pid_kind;
  int32_t tid_kind;
  int64_t pid;
  int64_t tid;
};

struct OddTime {
  int32_t event;
  int32_t which;  // 0: start, 1: duration
  int64_t begin;  // where its text is in the piece
  int64_t end;
};

struct Time {
  State state = kNone;
  int64_t ns = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Columns {
  std::vector<int32_t> kind, track, name, scope, id_kind;
  std::vector<int64_t> start_ns, duration_ns, id;
  std::vector<uint8_t> start_state, duration_state;
  std::vector<OddTime> odd;
  bool inexact = false;  // whether a time is a float that does not say which nanosecond is meant

  void clear();
};

class Events {
 public:
  explicit Events(uint64_t seed)
      : texts(seed), raws(seed + 1), keys(seed + 2), track_numbers_(64, TrackHash{seed}) {}

  // Takes the events of a piece of a list, without its brackets, and returns how many there are. Throws NotTaken.
  // `exact`: times are what their text says; else what a double says that is made of it, as in the Python decoders.
  int64_t decode(const char* begin, const char* end, bool exact);

  // texts by number; lists, objects and large numbers as they are written; keys of args
  Texts texts;
  Texts raws;
  Texts keys;
  // pairs of phase and category, and of process and thread, by number; of all pieces so far
  std::vector<std::array<int32_t, 2>> kinds;
  std::vector<Track> tracks;
  // of the last piece
  Columns columns;
  std::vector<ArgColumn> args;

 private:
  struct Event;
  struct KeyMemory {
    int32_t next = -1;  // the key that last followed it
    int32_t text = -1;  // the last text and raw value under it
    int32_t raw = -1;
    int64_t event = -1;  // the last event that has it
    std::array<int32_t, kKinds> column{-1, -1, -1, -1, -1, -1};
  };

  void event();
  void field(Event& event);
  void arguments(Event& event);
  void add_event(const Event& event);
  void add_arg(int32_t key, const Value& value);
  KeyMemory& memory(int32_t key);
  int32_t& first_key(int32_t category);
  int32_t key(int32_t& guess);
  int32_t optional_text();
  Value id();
  Value scalar();
  Value arg(int32_t key);
  Value number_of(const Number& number);
  Value text_under(KeyMemory& memory);
  Value raw_under(KeyMemory& memory);
  Time time();
  Time time_of_double(const Number& number);
  int32_t kind_of(int32_t phase, int32_t category);
  int32_t track_of(const Value& pid, const Value& tid);
  void start_piece();

  struct TrackHash {
    uint64_t seed;
    size_t operator()(const Track& track) const;
  };
  struct TrackEqual {
    bool operator()(const Track& one, const Track& other) const;
  };

  Scanner scanner_{nullptr, nullptr};
  const char* begin_ = nullptr;
  bool exact_ = false;
  int64_t n_events_ = 0;  // of all pieces, also those that were not taken
  std::vector<KeyMemory> memories_;   // by key
  std::vector<int32_t> first_keys_;   // by category: the key that its args last began with
  int32_t no_category_key_ = -1;      // that of args without a category
  std::unordered_map<uint64_t, int32_t> kind_numbers_;
  std::unordered_map<Track, int32_t, TrackHash, TrackEqual> track_numbers_;
  int32_t last_category_ = -1;
};

}  // namespace devprof::json
