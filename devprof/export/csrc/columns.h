// What columns and tables of texts must be; see chunk.h.
#pragma once

#include <cstdint>
#include <limits>

#include "chunk.h"

namespace devprof {

constexpr int64_t kTypes = 256;
constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max() / 4;

template <typename T>
const T* as(const Column& column) {
  return static_cast<const T*>(column.data);
}

inline bool holds(const Column& column, int64_t count, int64_t item_bytes) {
  if (count > kMostBytes / item_bytes || column.bytes != count * item_bytes) return false;
  return column.data != nullptr || column.bytes == 0;
}

inline bool holds_or_is_empty(const Column& column, int64_t count, int64_t item_bytes) {
  return column.bytes == 0 || holds(column, count, item_bytes);
}

inline bool is_table(const Texts& texts) {
  constexpr int64_t kItem = sizeof(int64_t);
  return texts.offsets.bytes >= kItem && texts.offsets.bytes % kItem == 0 && texts.offsets.data != nullptr &&
         texts.bytes.bytes >= 0 && (texts.bytes.data != nullptr || texts.bytes.bytes == 0);
}

// How many bytes a value of a kind has, 0: there is no such kind.
inline int64_t item_bytes(int64_t kind) {
  switch (kind) {
    case kInt:
    case kIntList:
      return sizeof(int64_t);
    case kFloat:
      return sizeof(double);
    case kBool:
      return sizeof(uint8_t);
    case kString:
    case kJson:
      return sizeof(int32_t);
    default:
      return 0;
  }
}

}  // namespace devprof
