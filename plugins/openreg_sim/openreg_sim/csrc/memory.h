// Device memory: accounting, the allocator of device tensors, and pinned host memory.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <array>
#include <cstdlib>
#include <map>

#include "locks.h"

namespace openreg {

constexpr auto kOpenReg = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 16;
inline int n_devices = 2;
inline thread_local c10::DeviceIndex current_device = 0;

inline void check_device(int device) {
  TORCH_CHECK(device >= 0 && device < n_devices, "openreg: device index ", device, " is out of range, there are ",
              n_devices, " devices (DEVPROF_OPENREG_DEVICES sets how many)");
}

// Makes `device` current until the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : before_(current_device) {
    check_device(device);
    current_device = static_cast<c10::DeviceIndex>(device);
  }
  ~DeviceScope() { current_device = before_; }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const c10::DeviceIndex before_;
};

// Hides the profiler's per-thread state, so that the host memory behind the device does not show in a profile.
class NoProfilerState {
 public:
  NoProfilerState() : saved_(c10::ThreadLocalDebugInfo::current()) {
    if (saved_) c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(nullptr);
  }
  ~NoProfilerState() {
    if (saved_) c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(std::move(saved_));
  }
  NoProfilerState(const NoProfilerState&) = delete;
  NoProfilerState& operator=(const NoProfilerState&) = delete;

 private:
  std::shared_ptr<c10::ThreadLocalDebugInfo> saved_;
};

// Bytes in use per device. Reserved bytes grow in segments of 2 MiB and shrink only on `empty_cache`, as a caching allocator's.
class Accounting {
 public:
  static constexpr int64_t kSegment = int64_t{2} << 20;
  static constexpr int64_t kDefaultTotal = int64_t{16} << 30;

  // Throws OutOfMemoryError, after telling the profiler, if the device has no room for `size` more bytes.
  void allocate(void* data, int64_t size, c10::DeviceIndex device) {
    Hold lock(Lock::Accounting);
    Usage& usage = usage_[device];
    const int64_t in_use = usage.stats.allocated_bytes[0].current;
    const int64_t limit = std::min(usage.limit, kDefaultTotal);
    if (in_use + size > limit) {
      ++usage.stats.num_ooms;
      const int64_t reserved = usage.stats.reserved_bytes[0].current;
      lock.unlock();
      const c10::Device where(kOpenReg, device);
      c10::reportOutOfMemoryToProfiler(size, in_use, reserved, where);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "openreg: out of memory on ", where, ": tried to allocate ", size,
                       " bytes, ", in_use, " of ", limit, " bytes are in use");
    }
    count(usage, size);
    report(data, size, device, std::move(lock));
  }

  void free(void* data, int64_t size, c10::DeviceIndex device) {
    Hold lock(Lock::Accounting);
    auto& stats = usage_[device].stats;
    for (auto* bytes : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes}) (*bytes)[0].decrease(size);
    for (auto* blocks : {&stats.allocation, &stats.active}) (*blocks)[0].decrease(1);
    report(data, -size, device, std::move(lock));
  }

  void empty_cache() {
    const Hold lock(Lock::Accounting);
    for (Usage& usage : usage_) {
      auto& reserved = usage.stats.reserved_bytes[0];
      const int64_t surplus = reserved.current - round_up(usage.stats.allocated_bytes[0].current);
      if (surplus <= 0) continue;
      reserved.decrease(surplus);
      ++usage.stats.num_device_free;
    }
  }

  void set_limit(c10::DeviceIndex device, int64_t limit) {
    const Hold lock(Lock::Accounting);
    usage_[device].limit = limit < 0 ? kDefaultTotal : limit;
  }

  std::pair<size_t, size_t> free_and_total(c10::DeviceIndex device) {
    const Hold lock(Lock::Accounting);
    const int64_t total = std::min(usage_[device].limit, kDefaultTotal);
    return {std::max<int64_t>(total - usage_[device].stats.reserved_bytes[0].current, 0), total};
  }

  template <class Function>
  auto with_stats(c10::DeviceIndex device, Function function) {
    const Hold lock(Lock::Accounting);
    return function(usage_[device].stats);
  }

 private:
  struct Usage {
    c10::CachingDeviceAllocator::DeviceStats stats;
    int64_t limit = kDefaultTotal;
  };

  static int64_t round_up(int64_t size) { return (size + kSegment - 1) / kSegment * kSegment; }

  static void count(Usage& usage, int64_t size) {
    auto& stats = usage.stats;
    for (auto* bytes : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes}) (*bytes)[0].increase(size);
    for (auto* blocks : {&stats.allocation, &stats.active}) (*blocks)[0].increase(1);
    const int64_t missing = round_up(stats.allocated_bytes[0].current) - stats.reserved_bytes[0].current;
    if (missing <= 0) return;
    stats.reserved_bytes[0].increase(missing);
    stats.segment[0].increase(1);
    ++stats.num_device_alloc;
  }

  void report(void* data, int64_t size, c10::DeviceIndex device, Hold lock) {
    const auto& stats = usage_[device].stats;
    const int64_t allocated = stats.allocated_bytes[0].current;
    const int64_t reserved = stats.reserved_bytes[0].current;
    lock.unlock();
    c10::reportMemoryUsageToProfiler(data, size, allocated, reserved, c10::Device(kOpenReg, device));
  }

  std::array<Usage, kMaxDevices> usage_;
};

inline Accounting& accounting() {
  static Accounting* const instance = new Accounting;  // leaked: tensors may die after static destructors ran
  return *instance;
}

// A piece of device memory: either its own, or memory that a CPU kernel allocated and that the device took over.
struct Block {
  void* data;
  int64_t size;
  c10::DeviceIndex device;
  c10::DataPtr host;

  static void destroy(void* context) {
    Block* block = static_cast<Block*>(context);
    accounting().free(block->data, block->size, block->device);
    {
      NoProfilerState quiet;
      if (block->host) block->host.clear();
      else std::free(block->data);
    }
    delete block;
  }

  static c10::DataPtr wrap(Block* block) {
    return {block->data, block, &destroy, c10::Device(kOpenReg, block->device)};
  }
};

// Takes over memory that a CPU kernel allocated, without a copy.
inline c10::DataPtr adopt_memory(c10::DataPtr host, size_t size, c10::DeviceIndex device) {
  if (!host) return {nullptr, c10::Device(kOpenReg, device)};
  accounting().allocate(host.get(), static_cast<int64_t>(size), device);
  void* const data = host.get();
  return Block::wrap(new Block{data, static_cast<int64_t>(size), device, std::move(host)});
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex device = current_device;
    if (size == 0) return {nullptr, c10::Device(kOpenReg, device)};
    void* const data = std::aligned_alloc(64, (size + 63) / 64 * 64);
    TORCH_CHECK_WITH(OutOfMemoryError, data, "openreg: the host has no memory for ", size, " bytes of the device");
    try {
      accounting().allocate(data, static_cast<int64_t>(size), device);
    } catch (...) {
      std::free(data);
      throw;
    }
    return Block::wrap(new Block{data, static_cast<int64_t>(size), device, {}});
  }

  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { accounting().empty_cache(); }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // numerics run at once: memory is never in use later
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    check_device(device);
    return accounting().with_stats(device, [](auto& stats) { return stats; });
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    for_each_stat(device, [](auto& stat) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    for_each_stat(device, [](auto& stat) { stat.reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    check_device(device);
    return accounting().free_and_total(device);
  }

 private:
  template <class Function>
  void for_each_stat(c10::DeviceIndex device, Function function) {
    check_device(device);
    accounting().with_stats(device, [&](auto& s) {
      for (auto* array : {&s.allocated_bytes, &s.reserved_bytes, &s.active_bytes, &s.requested_bytes, &s.allocation, &s.active,
                          &s.segment})
        function((*array)[0]);
    });
  }
};

inline Allocator& allocator() {
  static Allocator* const instance = new Allocator;
  return *instance;
}

// Pinned host memory: ordinary memory that is remembered as pinned.
class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* const data = std::aligned_alloc(64, (size + 64) / 64 * 64);
    TORCH_CHECK_WITH(OutOfMemoryError, data, "openreg: the host has no memory for ", size, " pinned bytes");
    const Hold lock(Lock::Pinned);
    blocks()[reinterpret_cast<uintptr_t>(data)] = size;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  static bool owns(const void* data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const Hold lock(Lock::Pinned);
    auto after = blocks().upper_bound(address);
    if (after == blocks().begin()) return false;
    --after;
    return address < after->first + std::max<size_t>(after->second, 1);
  }

  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}

 private:
  static void release(void* data) {
    {
      const Hold lock(Lock::Pinned);
      blocks().erase(reinterpret_cast<uintptr_t>(data));
    }
    std::free(data);
  }
  static std::map<uintptr_t, size_t>& blocks() {
    static auto* const instance = new std::map<uintptr_t, size_t>;
    return *instance;
  }
};

inline PinnedAllocator& pinned_allocator() {
  static PinnedAllocator* const instance = new PinnedAllocator;
  return *instance;
}

}  // namespace openreg
