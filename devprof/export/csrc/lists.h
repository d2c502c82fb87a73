// Lists of numbers that come again: those are worth a number of their own in the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace devprof {

class Lists {
 public:
  // The number of a list, from 0 on; -1 for one that has not come before. After many others it may get another number.
  int64_t number(const int64_t* values, int64_t width) {
    if (2 * (count_ + 1) > slots_.size()) make_room();
    Slot& slot = find(values, width);
    if (slot.width == kFree) {
      slot = {static_cast<int64_t>(values_.size()), width, -1};
      values_.insert(values_.end(), values, values + width);
      ++count_;
      return -1;
    }
    if (slot.number < 0) slot.number = numbers_++;
    return slot.number;
  }

 private:
  static constexpr int64_t kFree = -1;
  static constexpr size_t kMost = 1 << 16;  // slots; twice as many as lists, which bounds the memory

  struct Slot {
    int64_t from = 0;  // in `values_`
    int64_t width = kFree;
    int64_t number = -1;
  };

  Slot& find(const int64_t* values, int64_t width) {
    constexpr uint64_t kScatter = 0x9E3779B97F4A7C15;  // 2^64 by the golden ratio: spreads numbers that lie together
    uint64_t hash = static_cast<uint64_t>(width);
    for (int64_t i = 0; i < width; ++i) hash = (hash ^ hash >> 29 ^ static_cast<uint64_t>(values[i])) * kScatter;
    const size_t mask = slots_.size() - 1;
    for (size_t at = static_cast<size_t>(hash >> 32) & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.width == kFree) return slot;
      if (slot.width == width && std::equal(values, values + width, values_.begin() + slot.from)) return slot;
    }
  }

  void make_room() {
    std::vector<Slot> old(slots_.empty() ? 1024 : std::min(2 * slots_.size(), kMost));
    old.swap(slots_);
    if (old.size() == kMost) {  // forgotten
      values_.clear();
      count_ = 0;
      return;
    }
    for (const Slot& slot : old) {
      if (slot.width != kFree) find(values_.data() + slot.from, slot.width) = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<int64_t> values_;
  size_t count_ = 0;
  int64_t numbers_ = 0;
};

}  // namespace devprof
