// Protobuf's wire format, as bytes that are put one after the other: protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace devprof {

constexpr int kMostOfVarint = 10;

enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

constexpr uint64_t tag(uint64_t field, Wire wire) { return field << 3 | wire; }

inline int varint_bytes(uint64_t value) {
  int bytes = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++bytes;
  }
  return bytes;
}

inline uint8_t* put_varint(uint8_t* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}

inline uint8_t* put_number(uint8_t* at, uint64_t field, uint64_t value) {
  return put_varint(put_varint(at, tag(field, kVarint)), value);
}

inline uint8_t* put_fixed64(uint8_t* at, uint64_t field, uint64_t value) {
  at = put_varint(at, tag(field, kFixed64));
  for (int i = 0; i < 8; ++i) *at++ = static_cast<uint8_t>(value >> 8 * i);
  return at;
}

inline uint8_t* put_bytes(uint8_t* at, const void* data, int64_t size) {
  if (size > 0) std::memcpy(at, data, static_cast<size_t>(size));
  return at + size;
}

// A block of bytes that grows; what `room` gives is good until it is asked again.
class Octets {
 public:
  uint8_t* room(int64_t more) {
    const size_t needed = size_ + static_cast<size_t>(more);
    if (needed > block_.size()) block_.resize(needed + needed / 2);
    return block_.data() + size_;
  }

  void filled_to(const uint8_t* end) { size_ = static_cast<size_t>(end - block_.data()); }
  void clear() { size_ = 0; }
  const uint8_t* data() const { return block_.data(); }
  int64_t size() const { return static_cast<int64_t>(size_); }

 private:
  std::vector<uint8_t> block_;
  size_t size_ = 0;
};

}  // namespace devprof
