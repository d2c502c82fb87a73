// The C ABI: a chunk of events as columns, in the order in which they are written. native_events.py has the same layout.
#pragma once

#include <cstdint>

namespace devprof {

// A column with its size, so that it can be compared with what the chunk needs of it.
struct Column {
  const void* data;
  int64_t bytes;
};

// Texts one after the other: number i stands at offsets[i] .. offsets[i + 1].
struct Texts {
  Column bytes;    // char
  Column offsets;  // int64, one more than there are texts
};

// Numbers of devprof.store.ItemKind.
enum Kind : int64_t { kInt = 0, kFloat = 1, kBool = 2, kString = 3, kIntList = 4, kJson = 5 };

// One arg: `key` is a number in Chunk::keys; the text there ends with the colon.
struct Field {
  int64_t kind;
  int64_t key;
  int64_t width;   // numbers in a list
  Column values;   // int64, double, uint8 or int32, (events,) or (events, width)
  Column present;  // uint8 (events,); empty: all have it
};

enum Shape : uint8_t { kSlice = 0, kInstant = 1, kCounter = 2 };

struct Chunk {
  int64_t events;
  int64_t fields;
  const Field* field;
  Column type;           // uint8 (events,)
  Column name;           // int32 (events,), in `quoted`
  Column track;          // int64 (events,), in `tracks`
  Column since_ns;       // uint64 (events,), from the file's base
  Column lasted_ns;      // uint64 (events,)
  Column arrow;          // uint8 (events,), in `arrow_heads`, 0: none; empty: no event has one
  Column arrow_number;   // int64 (events,)
  Column kept;           // uint8 (events,); empty: all are written
  Column shape;          // uint8 (256,), by type: Shape
  Texts heads;           // by type: up to the name
  Texts arrow_heads;     // by kind of arrow: up to its number
  Texts arrow_tails;     // and after its time
  Texts tracks;          // process and thread
  Texts quoted;          // names, values of kString
  Texts verbatim;        // values of kJson
  Texts keys;
};

// What `encode` returns where it does not write.
enum Refusal : int64_t {
  kBadColumn = -1,  // a column's size is not what the chunk needs
  kBadNumber = -2,  // the number of a text that is not there, a kind that is none
  kNotFinite = -3,
};

// Writes events from the one with index `first` on, with ",\n" between them, while they fit.
// Returns how many events it went past, 0: the first one does not fit; or a Refusal. `*written`: bytes of whole events.
int64_t encode(const Chunk& chunk, int64_t first, char* out, int64_t capacity, int64_t* written);

}  // namespace devprof
