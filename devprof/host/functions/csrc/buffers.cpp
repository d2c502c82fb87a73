#include "buffers.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace devprof {

namespace {
constexpr uint64_t kFirst = 128;  // small, because there may be thousands of threads
constexpr uint64_t kLargest = 16384;
}  // namespace

bool Buffer::grow() {
  const uint64_t capacity = chunks_.empty() ? kFirst : std::min(kLargest, chunks_.back().capacity * 2);
  try {
    // not make_unique: it would write zeros over pages that may never be needed
    chunks_.push_back({std::unique_ptr<Event[]>(new Event[capacity]), capacity});
  } catch (const std::bad_alloc&) {
    return false;
  }
  at_ = chunks_.back().events.get();
  end_ = at_ + capacity;
  return true;
}

uint64_t Buffer::size() const {
  uint64_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.capacity;
  return total - static_cast<uint64_t>(end_ - at_);
}

void Buffer::copy(Event* out) const {
  uint64_t left = size();
  for (const Chunk& chunk : chunks_) {
    const uint64_t n = std::min(left, chunk.capacity);
    std::memcpy(out, chunk.events.get(), n * sizeof(Event));
    out += n;
    left -= n;
  }
}

}  // namespace devprof
