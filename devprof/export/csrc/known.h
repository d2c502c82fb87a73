// Which numbers have been seen.
#pragma once

#include <cstdint>
#include <vector>

namespace devprof {

// Small numbers, one bit each.
class Bits {
 public:
  // Whether this one is new.
  bool add(size_t number) {
    if (number / 64 >= words_.size()) words_.resize(number / 64 + 1);
    const uint64_t bit = uint64_t{1} << number % 64;
    uint64_t& word = words_[number / 64];
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }

 private:
  std::vector<uint64_t> words_;
};

// Any numbers but the largest one: an open table, at most half full.
class Known {
 public:
  // Whether this one is new.
  bool add(uint64_t number) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    if (!put(number + 1)) return false;
    ++count_;
    return true;
  }

 private:
  bool put(uint64_t entry) {
    constexpr uint64_t kScatter = 0x9E3779B97F4A7C15;  // 2^64 by the golden ratio: spreads numbers that lie together
    const size_t mask = slots_.size() - 1;
    size_t at = static_cast<size_t>((entry * kScatter) >> 32) & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask) {
      if (slots_[at] == entry) return false;
    }
    slots_[at] = entry;
    return true;
  }

  void grow() {
    std::vector<uint64_t> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const uint64_t entry : old) {
      if (entry != 0) put(entry);
    }
  }

  std::vector<uint64_t> slots_;  // 0: free
  size_t count_ = 0;
};

}  // namespace devprof
