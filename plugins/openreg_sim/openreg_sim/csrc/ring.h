// The ring of device calls, the per-thread correlation stacks, and the way up into the Python runtime. Knows no torch.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "locks.h"
#include "openreg_activity.h"

namespace openreg {

// --- correlation stacks (the OpenRegTracer) ------------------------------------------------------------------------------

enum CorrelationKind : uint32_t {
  kOperator = OR_EXTERNAL_CORRELATION_OPERATOR,
  kUser = OR_EXTERNAL_CORRELATION_USER,
  kCorrelationKinds,
};

// Ids the profiler pushed on this thread. Plain data, so that a thread may end at any time. A stack deeper than the array
// keeps its depth right and reads as the deepest id that fitted.
struct CorrelationStacks {
  static constexpr uint32_t kCapacity = 512;
  uint64_t epoch;
  uint32_t depth[kCorrelationKinds];
  uint64_t ids[kCorrelationKinds][kCapacity];

  uint64_t top(uint32_t kind) const {
    const uint32_t n = depth[kind];
    return n == 0 ? 0 : ids[kind][(n < kCapacity ? n : kCapacity) - 1];
  }
};

inline std::atomic<uint32_t> tracing_kinds{0};  // OR_ACTIVITY_KIND_*; ids are kept while there is any
inline std::atomic<uint64_t> tracing_epoch{1};
inline std::atomic<uint64_t> unbalanced_pops{0};
inline thread_local CorrelationStacks correlation_stacks{};

inline bool tracing_enabled() { return tracing_kinds.load(std::memory_order_relaxed) != 0; }

// Where nothing was enabled, an epoch starts before the first kind is on.
inline void enable_tracing(uint32_t kinds) {
  kinds &= OR_ACTIVITY_KIND_ALL;
  if (kinds != 0 && tracing_kinds == 0) {
    unbalanced_pops = 0;
    tracing_epoch.fetch_add(1);
  }
  tracing_kinds.fetch_or(kinds);
}

inline void disable_tracing(uint32_t kinds) { tracing_kinds.fetch_and(~kinds); }

// A profiler that stopped in the middle of an op leaves pushes without pops, so a thread's stacks hold for one epoch only.
inline CorrelationStacks& current_stacks() {
  CorrelationStacks& stacks = correlation_stacks;
  const uint64_t epoch = tracing_epoch.load(std::memory_order_relaxed);
  if (stacks.epoch != epoch) {
    stacks.epoch = epoch;
    stacks.depth[kOperator] = stacks.depth[kUser] = 0;
  }
  return stacks;
}

inline bool push_correlation(uint32_t kind, uint64_t id) {
  if (!tracing_enabled() || kind >= kCorrelationKinds) return false;
  CorrelationStacks& stacks = current_stacks();
  const uint32_t at = stacks.depth[kind]++;
  if (at < CorrelationStacks::kCapacity) stacks.ids[kind][at] = id;
  return true;
}

inline bool pop_correlation(uint32_t kind, uint64_t* last) {
  if (last) *last = 0;
  if (!tracing_enabled() || kind >= kCorrelationKinds) return false;
  CorrelationStacks& stacks = current_stacks();
  if (stacks.depth[kind] == 0) {
    unbalanced_pops.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (last) *last = stacks.top(kind);
  --stacks.depth[kind];
  return true;
}

// --- records -------------------------------------------------------------------------------------------------------------

enum class CallKind : uint8_t { Launch = 1, Memcpy, Memset, EventRecord, StreamWaitEvent, EventDestroy };
enum class CopyKind : uint8_t { None = 0, HostToDevice = 1, DeviceToHost, DeviceToDevice, PeerToPeer };

// One non-blocking call. The same layout as RING_DTYPE in ring.py.
struct Record {
  int64_t host_start_ns;
  int64_t host_end_ns;
  uint64_t op_id;
  uint64_t user_id;
  int64_t thread_id;
  int64_t bytes;
  uint64_t event;
  uint32_t name;
  uint32_t signature;
  int32_t stream;
  int16_t device;
  int16_t peer;
  CallKind kind;
  CopyKind copy_kind;
  uint8_t pad[6];
};
static_assert(sizeof(Record) == 80, "Record and RING_DTYPE must have one layout");

inline int64_t unix_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline thread_local int64_t cached_thread_id = 0;

inline int64_t thread_id() {
  if (cached_thread_id == 0) cached_thread_id = syscall(SYS_gettid);
  return cached_thread_id;
}

// A new record for a call on this thread that began at `host_start_ns`.
inline Record make_record(CallKind kind, int device, int stream, int64_t host_start_ns) {
  Record record{};
  record.host_start_ns = host_start_ns;
  record.thread_id = thread_id();
  record.kind = kind;
  record.device = static_cast<int16_t>(device);
  record.stream = stream;
  record.peer = -1;
  if (tracing_enabled()) {
    const CorrelationStacks& stacks = current_stacks();
    record.op_id = stacks.top(kOperator);
    record.user_id = stacks.top(kUser);
  }
  return record;
}

// --- calls into Python ---------------------------------------------------------------------------------------------------

// Function pointers that Python sets, and clears before it goes: a caller in flight is waited for, since a thread that
// asks for the GIL of an ending interpreter is killed.
template <class Function>
class Upcall {
 public:
  void set(Function function) { function_ = function; }

  // Runs `call(function)` and returns true, or returns false if there is no function.
  template <class Call>
  bool with(Call call) {
    in_flight_.fetch_add(1);
    const Function function = function_.load();
    if (function) call(function);
    in_flight_.fetch_sub(1);
    return function != nullptr;
  }

  // Waits until nobody is inside, for five seconds at most.
  bool clear() {
    function_ = nullptr;
    for (int i = 0; i < 50'000 && in_flight_.load() != 0; ++i) usleep(100);
    return in_flight_.load() == 0;
  }

  void forget_callers() { in_flight_ = 0; }

 private:
  std::atomic<Function> function_{nullptr};
  std::atomic<int> in_flight_{0};
};

// An interrupt (Ctrl-C) that arrives inside a callback would be lost there. Python hands it back, and it is raised again
// for the program once the callback is left.
constexpr int kInterrupted = 1;

// Returns 0 or kInterrupted.
using DrainCallback = int (*)();
// Returns the answer of a blocking call or query. Writes a message into `error` if it failed, or the one byte kInterrupted.
using ApiCallback = double (*)(int32_t call, int64_t a, int64_t b, char* error, size_t error_size);

enum class ApiCall : int32_t {
  DeviceSynchronize = 1,  // a: device
  StreamSynchronize,      // a: device, b: stream
  StreamQuery,            // a: device, b: stream; 1 if done
  EventSynchronize,       // a: event
  EventQuery,             // a: event; 1 if done
  EventElapsed,           // a: start, b: end; milliseconds
};

inline Upcall<DrainCallback> drain_upcall;
inline Upcall<ApiCallback> api_upcall;

// --- the ring ------------------------------------------------------------------------------------------------------------

class Ring {
 public:
  // Queues a record. A full ring is drained by Python on this thread first, more than once if other threads fill it again; if
  // that is not possible the record is counted as dropped. Destroying an event never calls Python: it may happen anywhere,
  // also while the interpreter ends.
  void push(const Record& record) {
    const bool is_destroy = record.kind == CallKind::EventDestroy;
    if (try_push(record, is_destroy)) return;
    for (int tries = 0; tries < kMostTries && !is_destroy && call_drain(); ++tries) {
      if (try_push(record, false)) return;
    }
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }

  size_t drain(Record* out, size_t capacity) {
    const Hold lock(Lock::Ring);
    const size_t n = capacity < records_.size() ? capacity : records_.size();
    if (n != 0) std::memcpy(out, records_.data(), n * sizeof(Record));
    records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }

  size_t pending() {
    const Hold lock(Lock::Ring);
    return records_.size();
  }

  void set_capacity(size_t capacity) {
    const Hold lock(Lock::Ring);
    capacity_ = capacity;
  }

  uint64_t dropped() const { return dropped_.load(); }

  // A fork happens with the ring locked, and the child starts with an empty one: the calls in it were the parent's.
  void after_fork_in_child() {
    records_.clear();
    dropped_ = 0;
  }

 private:
  bool try_push(const Record& record, bool beyond_capacity) {
    const Hold lock(Lock::Ring);
    if (records_.size() >= capacity_ && !(beyond_capacity && records_.size() < 2 * capacity_)) return false;
    records_.push_back(record);
    return true;
  }

  // Returns false if there is nobody to drain, or if this thread is at it already.
  static bool call_drain() {
    if (draining_) return false;
    draining_ = true;
    const bool is_called = drain_upcall.with([](DrainCallback drain) {
      if (drain() == kInterrupted) raise(SIGINT);
    });
    draining_ = false;
    return is_called;
  }

  static constexpr int kMostTries = 100;  // an ending: Python drains nothing while a drain of its own is under way here
  std::vector<Record> records_;
  size_t capacity_ = 65536;
  std::atomic<uint64_t> dropped_{0};
  static inline thread_local bool draining_ = false;
};

inline Ring& ring() {
  static Ring* const instance = new Ring;  // leaked: threads may launch while the process ends
  return *instance;
}

inline void after_fork_in_child() {
  ring().after_fork_in_child();
  cached_thread_id = 0;
  drain_upcall.forget_callers();
  api_upcall.forget_callers();
}

// --- events --------------------------------------------------------------------------------------------------------------

inline std::atomic<uint64_t> next_event{1};

inline void push_event_call(CallKind kind, uint64_t event, int device, int stream) {
  Record record = make_record(kind, device, stream, unix_ns());
  record.event = event;
  record.host_end_ns = unix_ns();
  ring().push(record);
}

}  // namespace openreg
