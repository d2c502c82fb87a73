// Random numbers, and columns of exact size on the heap, for the programs that drive the native writers under sanitizers.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "columns.h"

inline std::mt19937_64 generator;

inline int64_t below(int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(n)); }

inline int64_t any_int() {
  switch (below(4)) {
    case 0:
      return below(10);
    case 1:
      return std::numeric_limits<int64_t>::min() + below(2);
    case 2:
      return std::numeric_limits<int64_t>::max() - below(2);
    default:
      return static_cast<int64_t>(generator()) >> below(64);
  }
}

// The memory that columns point to.
struct Memory {
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<int64_t> sizes;

  template <typename Value, typename Make>
  devprof::Column column(int64_t n, Make make) {
    const size_t bytes = static_cast<size_t>(n) * sizeof(Value);
    memory.emplace_back(new char[bytes]);
    sizes.push_back(static_cast<int64_t>(bytes));
    Value* const values = reinterpret_cast<Value*>(memory.back().get());
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<Value>(make());
    return {values, static_cast<int64_t>(bytes)};
  }

  devprof::Texts texts(int64_t n) {
    std::vector<int64_t> offsets{0};
    for (int64_t i = 0; i < n; ++i) offsets.push_back(offsets.back() + (below(20) == 0 ? below(3000) : below(30)));
    size_t next = 0;
    const devprof::Column bytes = column<char>(offsets.back(), [] { return 'a' + below(26); });
    return {bytes, column<int64_t>(n + 1, [&] { return offsets[next++]; })};
  }
};
