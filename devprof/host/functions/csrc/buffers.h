// Events of one thread each, in chunks that are never moved. Guarded by the GIL: one writer, its own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace devprof {

// The same bits as in events.py.
constexpr uint32_t kModule = 1;
constexpr uint32_t kCallOfC = 2;
constexpr uint32_t kLeave = 4;
constexpr int kIndexShift = 3;
constexpr uint32_t kNone = UINT32_MAX;  // no index: not a function that is recorded, or out of memory

struct Event {
  int64_t tick;
  uint32_t what;
  int32_t extra;
};
static_assert(sizeof(Event) == 16, "numpy reads these bytes");

class Buffer {
 public:
  uint64_t native_id = 0;
  int64_t skipped = 0;  // calls beyond the limit that are open; their leaves are skipped too

  // False where there is no memory left.
  bool append(const Event& event) {
    if (at_ == end_ && !grow()) return false;
    *at_++ = event;
    return true;
  }

  uint64_t size() const;
  void copy(Event* out) const;

 private:
  struct Chunk {
    std::unique_ptr<Event[]> events;
    uint64_t capacity;
  };

  bool grow();

  std::vector<Chunk> chunks_;
  Event* at_ = nullptr;
  Event* end_ = nullptr;
};

}  // namespace devprof
