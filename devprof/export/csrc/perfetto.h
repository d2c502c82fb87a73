// The C ABI of the writer of Perfetto's slices and instants: a trace's own columns. perfetto_abi.py has the same layout.
#pragma once

#include <cstdint>
#include <memory>

#include "chunk.h"

namespace devprof {

// What a type of events is: bits of PerfettoTrace::shape.
enum TypeBit : uint8_t { kIsSlice = 1, kHasOwnId = 2, kHasNoOp = 4, kHasLaunch = 8 };

// Args that follow from an event's ids, in the order in which they are written.
enum Derived { kExternalId, kCorrelation, kDerived };

// Values of some events, ascending.
struct Sparse {
  Column events;  // int64
  Column values;
};

struct Item {
  int64_t kind;   // Kind
  int64_t key;    // in `keys`
  int64_t width;  // numbers in a list
  Sparse column;  // int64, double, uint8 or int32, as in Field
  Column said;    // int64 (rows,), or empty: what the tracks of a device's rows say already; only for kInt
};

struct PerfettoTrace {
  int64_t events;
  int64_t rows;
  int64_t tracks;
  int64_t strings;
  int64_t base_ns;   // of the file's clock; no event starts before it
  Column type;       // uint8 (events,)
  Column name;       // int32 (events,)
  Column row;        // int32 (events,)
  Column start_ns;   // int64 (events,)
  Column end_ns;     // int64 (events,)
  Column id;         // int64 (events,)
  Column linked;     // int64 (events,)
  Column shape;      // uint8 (256,): TypeBits
  Column first;      // int64 (rows,): a row's first track, counted from 0
  Column on_device;  // uint8 (rows,)
  Sparse lanes;      // int64: those that are not on a row's first track
  Column end_event;      // int32 (ends,), ascending: where arrows end
  Column end_number;     // int32 (ends,)
  Column start_event;    // int32 (starts,), ascending: where they start
  Column start_first;    // int32 (starts,): number of the first one
  Column start_arrows;   // int32 (starts,): how many
  Texts keys;
  Texts categories;  // by type
  int64_t derived_key[kDerived];   // in `keys`
  int64_t derived_item[kDerived];  // the item with the same key, which holds where an event has it; -1: none
  int64_t items;
  const Item* item;
};

// Events to be written now, in this order.
struct Block {
  int64_t begin;   // without `events`: the first one
  int64_t count;
  Column events;   // int64 (count,), or empty: those from `begin` on
  Column skipped;  // uint8 (count,), or empty
  Column number;   // int32 (strings,): where in `texts` a text stands; below 0: nowhere
  Texts texts;
};

class PerfettoWriter {
 public:
  // The trace must stay where it is while the writer lives. Throws std::bad_alloc.
  explicit PerfettoWriter(const PerfettoTrace& trace);
  ~PerfettoWriter();

  // 0 where the trace's columns are what the writer needs, else a Refusal.
  int64_t check() const;
  // Makes the packets of a block; 0, or a Refusal. Throws std::bad_alloc.
  int64_t write(const Block& block);
  // Makes the packets that end what is open.
  void finish();

  // What has been made since the last call of `write` or `finish` began.
  const uint8_t* data() const;
  int64_t size() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

// Flags of rows.
enum RowFlag : uint8_t { kCrosses = 1, kOutOfOrder = 2 };

// What rows are looked at by.
struct Slices {
  int64_t events;
  int64_t rows;
  Column type;      // uint8 (events,)
  Column row;       // int32 (events,)
  Column start_ns;  // int64 (events,)
  Column end_ns;    // int64 (events,)
  Column shape;     // uint8 (256,): TypeBits
};

// Marks rows on which slices cross, or do not come in order of their starts, the longest first: `flags` is uint8 (rows,).
// Returns 0 or a Refusal. Throws std::bad_alloc.
int64_t mark_rows(const Slices& slices, uint8_t* flags);

}  // namespace devprof
