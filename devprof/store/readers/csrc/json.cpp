// The C interface to the decoder, for ctypes. One decoder is used by one thread at a time; no call takes Python's lock.
//
// What `devprof_json_columns` and the like return points into the decoder, and is good until its next piece.

#include <cstdint>
#include <new>

#include "events.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using devprof::json::Columns;
using devprof::json::Events;
using devprof::json::NotTaken;
using devprof::json::OddTime;
using devprof::json::Texts;
using devprof::json::Track;

namespace {

struct Table {
  const void* data;
  int64_t size;
};

struct EventTable {
  const int32_t *kind, *track, *name, *scope, *id_kind;
  const int64_t *start_ns, *duration_ns, *id;
  const uint8_t *start_state, *duration_state;
};

struct ArgTable {
  int32_t key;
  int32_t kind;
  int64_t size;
  const int32_t* events;
  const int64_t* values;
};

enum Which : int32_t { kKindTable = 0, kTrackTable = 1, kOddTable = 2 };

template <typename T>
Table table_of(const std::vector<T>& rows) {
  return {rows.data(), static_cast<int64_t>(rows.size())};
}

}  // namespace

EXPORT const char* devprof_build_info() { return DEVPROF_BUILD_INFO; }

EXPORT void* devprof_json_new(uint64_t seed) { return new (std::nothrow) Events(seed); }

EXPORT void devprof_json_free(void* decoder) { delete static_cast<Events*>(decoder); }

// Returns how many events the piece holds, or -1 where it is not taken.
EXPORT int64_t devprof_json_decode(void* decoder, const char* text, int64_t size, int32_t exact) {
  try {
    return static_cast<Events*>(decoder)->decode(text, text + size, exact != 0);
  } catch (const NotTaken&) {
    return -1;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

EXPORT int32_t devprof_json_inexact(const void* decoder) {
  return static_cast<const Events*>(decoder)->columns.inexact ? 1 : 0;
}

EXPORT void devprof_json_events(const void* decoder, EventTable* out) {
  const Columns& c = static_cast<const Events*>(decoder)->columns;
  *out = {c.kind.data(),     c.track.data(),       c.name.data(), c.scope.data(),       c.id_kind.data(),
          c.start_ns.data(), c.duration_ns.data(), c.id.data(),   c.start_state.data(), c.duration_state.data()};
}

// Writes up to `most` columns with values in them to `out`, and returns how many there are.
EXPORT int64_t devprof_json_args(const void* decoder, ArgTable* out, int64_t most) {
  int64_t found = 0;
  for (const auto& column : static_cast<const Events*>(decoder)->args) {
    if (column.events.empty()) {
      continue;
    }
    if (found < most) {
      out[found] = {column.key, column.kind, static_cast<int64_t>(column.events.size()), column.events.data(),
                    column.values.data()};
    }
    ++found;
  }
  return found;
}

EXPORT void devprof_json_table(const void* decoder, int32_t which, Table* out) {
  const auto& events = *static_cast<const Events*>(decoder);
  *out = which == kKindTable    ? table_of(events.kinds)
         : which == kTrackTable ? table_of(events.tracks)
                                : table_of(events.columns.odd);
}

// Where texts end, and their bytes. `which`: 0 texts, 1 values that are kept as they are written, 2 keys of args.
EXPORT int64_t devprof_json_texts(const void* decoder, int32_t which, const uint64_t** ends, const char** bytes) {
  const auto& events = *static_cast<const Events*>(decoder);
  const Texts& texts = which == 0 ? events.texts : which == 1 ? events.raws : events.keys;
  *ends = texts.ends();
  *bytes = texts.bytes();
  return static_cast<int64_t>(texts.size());
}
