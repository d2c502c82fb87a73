// The two functions that CUPTI calls for buffers, and the buffers; `cuda_cupti/python_exchange.py` does the same in Python.
//
// They run inside CUPTI: on the thread that made a CUDA call, on CUPTI's own worker, or within a flush. Here they need neither
// the GIL nor Python, so a launch never waits for it, no Ctrl-C is raised in them, and a buffer that comes back when the
// interpreter is gone does no harm. Each takes one lock, for as long as it takes to move a buffer from one list to another;
// whoever else takes it does no more than that under it.
//
//     FREE --request--> LENT --completion--> FILLED --next--> the decoder's --give_back, cleared--> FREE
//
// CUPTI may keep a buffer from one session to the next, and write the next one's records into it. So what comes back during a
// session is decoded in it, whenever it was lent; what comes back in between is nobody's, and free again at the next begin.
// In between nothing is lent.
#include <sys/mman.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum class State { Free, Lent, Filled };

struct Buffer {
  uint8_t* address;
  size_t size;
  size_t valid;
  int64_t number;  // of the loan, from 1
  bool given_up;   // nobody waits for it any more
  State state;
};

struct Item {
  Buffer* buffer;  // null: a signal
  int64_t signal;
};

struct Exchange {
  std::mutex lock;
  std::condition_variable arrived;
  std::unordered_map<uint8_t*, Buffer*> all;
  std::vector<Buffer*> free;
  std::vector<Buffer*> late;
  std::deque<Item> items;
  size_t size = 0;
  int64_t lent = 0;  // loans so far
  bool open = false;
  int64_t strange = 0;
  int64_t refused = 0;
};

// never destroyed: CUPTI may call until the process is gone
Exchange& exchange() {
  static Exchange* const one = new Exchange;
  return *one;
}

// Return a buffer that is in no list yet; null where there is no memory. Memory from the system is cleared.
Buffer* mapped(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return new Buffer{static_cast<uint8_t*>(memory), size, 0, 0, false, State::Free};
}

void unmap(Buffer* buffer) {
  munmap(buffer->address, buffer->size);
  delete buffer;
}

void clear(Buffer* buffer) {
  std::memset(buffer->address, 0, buffer->valid);
  buffer->valid = 0;
}

// The caller holds the lock.
Buffer* lent(Exchange& it, Buffer* buffer) {
  buffer->number = ++it.lent;
  buffer->given_up = false;
  buffer->state = State::Lent;
  return buffer;
}

// Return a buffer for CUPTI; null where there is no session, or no memory.
Buffer* lend(Exchange& it) {
  size_t size;
  {
    std::lock_guard<std::mutex> held(it.lock);
    if (!it.open) return nullptr;
    if (!it.free.empty()) {
      Buffer* buffer = it.free.back();
      it.free.pop_back();
      return lent(it, buffer);
    }
    size = it.size;
  }
  Buffer* buffer = mapped(size);
  std::lock_guard<std::mutex> held(it.lock);
  if (buffer == nullptr) {
    ++it.refused;
    return nullptr;
  }
  it.all.emplace(buffer->address, buffer);
  return lent(it, buffer);
}

template <typename Action>
void each_outstanding(Exchange& it, int64_t up_to, Action action) {
  for (const auto& [address, buffer] : it.all) {
    if (buffer->state == State::Lent && !buffer->given_up && buffer->number <= up_to) action(buffer);
  }
}

}  // namespace

// --- what CUPTI calls ----------------------------------------------------------------------------------------------------

DEVPROF_EXPORT void devprof_cupti_requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = nullptr;
  *size = 0;
  *most_records = 0;  // as many as fit
  try {
    if (Buffer* found = lend(exchange())) {
      *buffer = found->address;
      *size = found->size;
    }
  } catch (...) {  // no memory: declined
  }
}

DEVPROF_EXPORT void devprof_cupti_completed(void*, uint32_t, uint8_t* address, size_t, size_t valid) {
  Exchange& it = exchange();
  try {
    std::lock_guard<std::mutex> held(it.lock);
    const auto found = it.all.find(address);
    if (found == it.all.end() || found->second->state != State::Lent) {
      ++it.strange;
      return;
    }
    Buffer* buffer = found->second;
    buffer->valid = valid < buffer->size ? valid : buffer->size;
    if (it.open) {
      it.items.push_back({buffer, 0});
      it.arrived.notify_one();
    } else {
      it.late.push_back(buffer);
    }
    buffer->state = State::Filled;
  } catch (...) {  // no memory for the list: the buffer stays where it is, and is counted as never given back
  }
}

// --- what devprof calls, never inside CUPTI --------------------------------------------------------------------------------

// Start a session with at least `ready` free buffers; 0, or -1 where there is no memory.
DEVPROF_EXPORT int32_t devprof_cupti_begin(int64_t size, int64_t ready) {
  Exchange& it = exchange();
  std::vector<Buffer*> late;
  size_t missing;
  {
    std::lock_guard<std::mutex> held(it.lock);
    late.swap(it.late);
    for (const Item& item : it.items) {  // a session that was not decoded to its end
      if (item.buffer != nullptr) late.push_back(item.buffer);
    }
    it.items.clear();
    it.size = static_cast<size_t>(size);
    const size_t there = it.free.size() + late.size();
    missing = static_cast<size_t>(ready) > there ? static_cast<size_t>(ready) - there : 0;
  }
  for (Buffer* buffer : late) clear(buffer);
  while (missing-- > 0) {
    Buffer* buffer = mapped(static_cast<size_t>(size));
    if (buffer == nullptr) break;
    late.push_back(buffer);
  }
  std::lock_guard<std::mutex> held(it.lock);
  for (Buffer* buffer : late) {
    buffer->state = State::Free;
    it.all.emplace(buffer->address, buffer);
    it.free.push_back(buffer);
  }
  if (it.free.size() < static_cast<size_t>(ready)) return -1;
  it.open = true;
  return 0;
}

// End the session: what comes back from now on is nobody's, and nothing is lent.
DEVPROF_EXPORT void devprof_cupti_end() {
  Exchange& it = exchange();
  std::lock_guard<std::mutex> held(it.lock);
  it.open = false;
}

// Give all but `keep` free buffers back to the system.
DEVPROF_EXPORT void devprof_cupti_trim(int64_t keep) {
  Exchange& it = exchange();
  std::vector<Buffer*> spare;
  {
    std::lock_guard<std::mutex> held(it.lock);
    while (it.free.size() > static_cast<size_t>(keep)) {
      spare.push_back(it.free.back());
      it.all.erase(it.free.back()->address);
      it.free.pop_back();
    }
  }
  for (Buffer* buffer : spare) unmap(buffer);
}

// Wait for the next completed buffer, 1 with {address, valid bytes}, or the next signal, 0 with {signal}; in the order of arrival.
DEVPROF_EXPORT int32_t devprof_cupti_next(int64_t* found) {
  Exchange& it = exchange();
  std::unique_lock<std::mutex> held(it.lock);
  it.arrived.wait(held, [&it] { return !it.items.empty(); });
  const Item item = it.items.front();
  it.items.pop_front();
  if (item.buffer == nullptr) {
    found[0] = item.signal;
    return 0;
  }
  found[0] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(item.buffer->address));
  found[1] = static_cast<int64_t>(item.buffer->valid);
  return 1;
}

DEVPROF_EXPORT void devprof_cupti_post(int64_t signal) {
  Exchange& it = exchange();
  std::lock_guard<std::mutex> held(it.lock);
  it.items.push_back({nullptr, signal});
  it.arrived.notify_one();
}

// Clear a decoded buffer, for the next request.
DEVPROF_EXPORT void devprof_cupti_give_back(uint8_t* address) {
  Exchange& it = exchange();
  Buffer* buffer;
  {
    std::lock_guard<std::mutex> held(it.lock);
    const auto found = it.all.find(address);
    if (found == it.all.end() || found->second->state != State::Filled) return;
    buffer = found->second;
  }
  clear(buffer);  // the caller's alone until it is in the list
  std::lock_guard<std::mutex> held(it.lock);
  buffer->state = State::Free;
  it.free.push_back(buffer);
}

// Do not wait any more for buffers that CUPTI still holds, of the first `up_to` loans.
DEVPROF_EXPORT void devprof_cupti_give_up(int64_t up_to) {
  Exchange& it = exchange();
  std::lock_guard<std::mutex> held(it.lock);
  each_outstanding(it, up_to, [](Buffer* buffer) { buffer->given_up = true; });
}

// Count: {free, lent, filled, of the first `up_to` loans those that are waited for, loans so far, strange, refused}.
DEVPROF_EXPORT void devprof_cupti_counts(int64_t up_to, int64_t* found) {
  Exchange& it = exchange();
  std::lock_guard<std::mutex> held(it.lock);
  std::memset(found, 0, 7 * sizeof *found);
  for (const auto& [address, buffer] : it.all) ++found[static_cast<int>(buffer->state)];
  each_outstanding(it, up_to, [found](Buffer*) { ++found[3]; });
  found[4] = it.lent;
  found[5] = it.strange;
  found[6] = it.refused;
}
