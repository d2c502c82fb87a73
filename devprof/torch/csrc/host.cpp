// What torch offers beside Kineto: op recording on and off, memory reports, and the legacy profiler's stubs.
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ApproximateClock.h>
#include <cxxabi.h>
#include <torch/csrc/profiler/stubs/base.h>

#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#define DEVPROF_HAS_REGISTRY 1
#else
#define DEVPROF_HAS_REGISTRY 0
#endif

#include <atomic>
#include <cstring>
#include <mutex>
#include <typeinfo>
#include <vector>

#include "interrupt.h"

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

// Switch op recording on the calling thread; returns what it was.
DEVPROF_EXPORT int devprof_record_function(int enabled) {
  const bool was = at::isRecordFunctionEnabled();
  at::enableRecordFunction(enabled != 0);
  return was ? 1 : 0;
}

DEVPROF_EXPORT int devprof_report_memory(
    uint64_t address, int64_t delta, uint64_t allocated, uint64_t reserved, int device) {
  if (!c10::memoryProfilingEnabled()) {
    return 0;
  }
  c10::reportMemoryUsageToProfiler(
      reinterpret_cast<void*>(address),
      delta,
      allocated,
      reserved,
      c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)));
  return 1;
}

DEVPROF_EXPORT int devprof_report_out_of_memory(int64_t requested, uint64_t allocated, uint64_t reserved, int device) {
  if (!c10::memoryProfilingEnabled()) {
    return 0;
  }
  c10::reportOutOfMemoryToProfiler(
      requested, allocated, reserved, c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)));
  return 1;
}

// 1 where `name` is the encoding of something else to torch's tables ("Pi" would be shown as "int*").
DEVPROF_EXPORT int devprof_demangles(const char* name) {
  if (name == nullptr) {
    return 0;
  }
  int status = 0;
  char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const bool changes = status == 0 && readable != nullptr && std::strcmp(readable, name) != 0;
  std::free(readable);
  return changes ? 1 : 0;
}

// Python's side of the stubs. Each function takes the GIL itself (ctypes), catches everything, and returns a neutral value.
extern "C" struct DevprofStubs {
  uint64_t (*record)(int32_t* device); // handle of a recorded event, 0: not recorded
  double (*elapsed_us)(uint64_t start, uint64_t end);
  void (*mark)(const char* name);
  void (*range_push)(const char* name);
  void (*range_pop)();
  int (*enabled)();
  void (*on_each_device)(void (*visit)(void* context, int device), void* context);
  void (*synchronize)();
  void (*collect)(); // lets go of the events whose handles were freed
};

namespace {

std::atomic<const DevprofStubs*> g_stubs{nullptr}; // null before installation and after the interpreter began to exit
std::mutex g_freed_mutex;
auto& g_freed = *new std::vector<uint64_t>;

int collectFreed(void*);

// Results own their events and may be freed on any thread, with or without the GIL and under any lock: the handle is only noted.
// The first one of many has the main thread's next instruction collect them all.
void noteFreed(void* handle) {
  bool first = false;
  {
    std::lock_guard<std::mutex> guard(g_freed_mutex);
    first = g_freed.empty();
    g_freed.push_back(reinterpret_cast<uint64_t>(handle));
  }
  if (first && g_stubs.load() != nullptr) {
    devprof::onMainThread(collectFreed);
  }
}

uint64_t handleOf(const torch::profiler::impl::ProfilerVoidEventStub* event) {
  return event == nullptr ? 0 : reinterpret_cast<uint64_t>(event->get());
}

// Ops that a stub runs are not recorded: each would call the stub again, without an end.
struct InStub {
  at::RecordFunctionGuard no_ops{/*is_enabled=*/false};
};

// On the main thread, with the GIL. What frees an event may run ops: they are not the user's.
int collectFreed(void*) {
  if (const DevprofStubs* python = g_stubs.load()) {
    const InStub here;
    python->collect();
    devprof::raiseNotedInterrupt();
  }
  return 0;
}

struct Stubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event, int64_t* cpu_ns)
      const override {
    const DevprofStubs* python = g_stubs.load();
    const InStub here;
    int32_t index = 0;
    const uint64_t handle = python == nullptr ? 0 : python->record(&index);
    devprof::raiseNotedInterrupt();
    if (handle != 0) {
      *event = torch::profiler::impl::ProfilerVoidEventStub(reinterpret_cast<void*>(handle), noteFreed);
    } else {
      event->reset();
    }
    if (device != nullptr) {
      *device = static_cast<c10::DeviceIndex>(index);
    }
    if (cpu_ns != nullptr) {
      *cpu_ns = c10::getTime();
    }
  }

  float elapsed(
      const torch::profiler::impl::ProfilerVoidEventStub* start,
      const torch::profiler::impl::ProfilerVoidEventStub* end) const override {
    const DevprofStubs* python = g_stubs.load();
    const uint64_t first = handleOf(start);
    const uint64_t second = handleOf(end);
    if (python == nullptr || first == 0 || second == 0) {
      return 0.0f;
    }
    const InStub here;
    const auto elapsed = static_cast<float>(python->elapsed_us(first, second));
    devprof::raiseNotedInterrupt();
    return elapsed;
  }

  void mark(const char* name) const override {
    if (const DevprofStubs* python = g_stubs.load()) {
      const InStub here;
      python->mark(name);
    }
  }
  void rangePush(const char* name) const override {
    if (const DevprofStubs* python = g_stubs.load()) {
      const InStub here;
      python->range_push(name);
    }
  }
  void rangePop() const override {
    if (const DevprofStubs* python = g_stubs.load()) {
      const InStub here;
      python->range_pop();
    }
  }
  bool enabled() const override {
    const DevprofStubs* python = g_stubs.load();
    const InStub here;
    return python != nullptr && python->enabled() != 0;
  }
  void onEachDevice(std::function<void(int)> visit) const override {
    if (const DevprofStubs* python = g_stubs.load()) {
      const auto call = [](void* context, int device) { (*static_cast<std::function<void(int)>*>(context))(device); };
      const InStub here;
      python->on_each_device(call, &visit);
    }
  }
  void synchronize() const override {
    if (const DevprofStubs* python = g_stubs.load()) {
      const InStub here;
      python->synchronize();
    }
  }
};

Stubs& ourStubs() {
  static Stubs& ours = *new Stubs; // torch keeps the pointer for ever
  return ours;
}

} // namespace

// 1 where another backend's stubs are in torch's one place for them; their type is copied to `other`.
DEVPROF_EXPORT int devprof_stubs_of_another(char* other, uint64_t capacity) {
  const auto* present = torch::profiler::impl::privateuse1Stubs();
  if (present == nullptr || present == &ourStubs()) {
    return 0;
  }
  const char* type = typeid(*present).name();
  if (std::strstr(type, "DefaultStubs") != nullptr) { // torch's own placeholder, in an anonymous namespace of its profiler
    return 0;
  }
  if (other != nullptr && capacity > 0) {
    std::strncpy(other, type, capacity - 1);
    other[capacity - 1] = '\0';
  }
  return 1;
}

// Null switches them off, for the interpreter's exit.
DEVPROF_EXPORT void devprof_stubs_set(const DevprofStubs* python) {
  g_stubs.store(python);
}

// Register with torch unless another backend has: torch keeps one pointer, the last one wins, and none is given back.
// Returns 1 when ours are in place, 0 when another backend's are; its type is copied to `other`.
DEVPROF_EXPORT int devprof_stubs_register(char* other, uint64_t capacity) {
  if (devprof_stubs_of_another(other, capacity)) {
    return 0;
  }
  torch::profiler::impl::registerPrivateUse1Methods(&ourStubs());
  return 1;
}

// 1 where another backend gave torch a factory of profilers; devprof's own goes to Kineto directly. 0: none, or a torch that has no
// place for one. What others gave to Kineto directly cannot be asked.
DEVPROF_EXPORT int devprof_factory_of_another() {
#if DEVPROF_HAS_REGISTRY
  return torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().hasFactory() ? 1 : 0;
#else
  return 0;
#endif
}

// Take up to `capacity` handles of freed events; returns how many.
DEVPROF_EXPORT uint64_t devprof_stubs_freed(uint64_t* handles, uint64_t capacity) {
  std::lock_guard<std::mutex> guard(g_freed_mutex);
  const uint64_t n = handles == nullptr ? 0 : std::min<uint64_t>(capacity, g_freed.size());
  std::copy(g_freed.end() - n, g_freed.end(), handles);
  g_freed.resize(g_freed.size() - n);
  return n;
}
