// Texts by number, and metadata as typed columns by key: what a trace's activities carry beside their fixed columns.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace devprof {

// Distinct texts, numbered in the order in which they came.
class Texts {
 public:
  int32_t number(std::string_view text);
  const std::deque<std::string>& all() const { return all_; }

 private:
  std::deque<std::string> all_; // never moves its strings
  std::unordered_map<std::string_view, int32_t> numbers_;
};

// The values of one key, one list per type. What the key becomes where its types differ is decided in Python.
struct Items {
  template <typename T>
  struct Values {
    std::vector<uint32_t> events;
    std::vector<T> values;

    void add(uint32_t event, T value) {
      events.push_back(event);
      values.push_back(value);
    }
  };

  std::string key;
  Values<int64_t> ints;
  Values<double> floats;
  Values<uint8_t> bools;
  Values<int32_t> texts; // numbers of texts
  Values<int32_t> json; // numbers of texts that are JSON, or meant to be
  uint64_t nulls = 0;
};

class ItemTable {
 public:
  explicit ItemTable(Texts& texts) : texts_(texts) {}

  Items& of(std::string_view key);
  // A value as Kineto prints it, without the quotes that Kineto adds.
  void addPrinted(std::string_view key, uint32_t event, std::string_view value);
  void addText(std::string_view key, uint32_t event, std::string_view text);
  // A whole metadataJson(): `"key": value, "key": value`. Kineto does not escape what it pastes into it.
  void addMetadataJson(uint32_t event, std::string_view text);

  const std::deque<Items>& all() const { return all_; }

 private:
  Texts& texts_;
  std::deque<Items> all_;
  std::unordered_map<std::string_view, Items*> by_key_;
};

} // namespace devprof
