// Texts by number: each different one is kept once, in the order in which it was first seen.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace devprof::json {

inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

class Texts {
 public:
  explicit Texts(uint64_t seed) : seed_(seed), slots_(1024, kNone) {}

  // Returns the number of a text, adding it if it is new.
  int32_t number(std::string_view text) {
    const uint64_t hash = hash_of(text);
    size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] != kNone) {
      const int32_t known = slots_[slot];
      if (hashes_[static_cast<size_t>(known)] == hash && view(known) == text) {
        return known;
      }
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return add(text, hash, slot);
  }

  std::string_view view(int32_t number) const {
    const size_t begin = ends_[number];
    return {bytes_.data() + begin, ends_[number + 1] - begin};
  }

  // True where the text stands in JSON as it is, between its quotes.
  bool is_plain(int32_t number) const { return plain_[number]; }

  size_t size() const { return hashes_.size(); }
  // size() + 1 places in bytes(): text i is from the i-th to the next.
  const uint64_t* ends() const { return ends_.data(); }
  const char* bytes() const { return bytes_.data(); }

 private:
  static constexpr int32_t kNone = -1;

  // With a seed that a file cannot know, so that no file can make all its texts collide.
  uint64_t hash_of(std::string_view text) const {
    uint64_t hash = seed_ ^ text.size();
    const char* at = text.data();
    size_t left = text.size();
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t part;
      std::memcpy(&part, at, 8);
      hash = mix(hash ^ part, 0x9e3779b97f4a7c15ULL ^ seed_);
    }
    if (left != 0) {
      uint64_t part = 0;
      std::memcpy(&part, at, left);
      hash = mix(hash ^ part, 0xe7037ed1a0b428dbULL ^ seed_);
    }
    return mix(hash, 0x8ebc6af09c88c6e3ULL);
  }

  int32_t add(std::string_view text, uint64_t hash, size_t slot) {
    const auto added = static_cast<int32_t>(hashes_.size());
    hashes_.push_back(hash);
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    ends_.push_back(bytes_.size());
    bool plain = true;
    for (const char c : text) {
      plain &= static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    }
    plain_.push_back(plain);
    slots_[slot] = added;
    if (hashes_.size() * 2 > slots_.size()) {
      grow();
    }
    return added;
  }

  void grow() {
    std::vector<int32_t> wider(slots_.size() * 2, kNone);
    for (size_t number = 0; number < hashes_.size(); ++number) {
      size_t slot = hashes_[number] & (wider.size() - 1);
      while (wider[slot] != kNone) {
        slot = (slot + 1) & (wider.size() - 1);
      }
      wider[slot] = static_cast<int32_t>(number);
    }
    slots_.swap(wider);
  }

  uint64_t seed_;
  std::vector<int32_t> slots_;
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> ends_{0};
  std::vector<char> bytes_;
  std::vector<bool> plain_;
};

}  // namespace devprof::json
