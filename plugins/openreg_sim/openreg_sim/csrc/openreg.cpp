// The simulated device `openreg`: a torch backend under the key PrivateUse1. This file is its C interface, for ctypes.
//
//   locks.h      every lock of the library
//   ring.h       calls of the device as records, correlation stacks, calls into Python
//   names.h      names and shapes of launches as numbers
//   memory.h     allocators and accounting
//   device.h     devices, streams, events, generators
//   fallback.h   any operator on the CPU's kernels, without a copy
//   operators.h  what the dispatcher is told
//   openreg_activity.h  the functions here that C programs may call
//
// Nothing happens when the library is loaded; `orInit` makes the device.

#include <future>
#include <thread>

#include "operators.h"

#define OPENREG_API extern "C" __attribute__((visibility("default")))

namespace {

thread_local std::string last_error;

// Runs `function`; an exception becomes -1 and a text for `orLastError`.
template <class Function>
int guarded(Function function) {
  try {
    function();
    return 0;
  } catch (const c10::Error& error) {
    last_error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return -1;
}

template <class Function>
void for_each_generator(Function function) {
  for (const at::Generator& generator : openreg::default_generators()) {
    function(static_cast<const openreg::Generator&>(*generator.unsafeGetGeneratorImpl()));
  }
}

void lock_everything() {
  for_each_generator([](const openreg::Generator& generator) { generator.mutex().lock(); });
  openreg::lock_all();
}

void unlock_everything() {
  openreg::unlock_all();
  for_each_generator([](const openreg::Generator& generator) { generator.mutex().unlock(); });
}

// A fork must not happen while another thread holds a lock that the child will want. Generators that the program made are
// the program's, as with torch's own.
void follow_forks() {
  pthread_atfork(lock_everything, unlock_everything, [] {
    openreg::after_fork_in_child();
    unlock_everything();
  });
}

// Runs an empty backward on each device, from a thread without a context of its own.
void run_empty_backwards() {
  for (int i = 0; i < openreg::n_devices; ++i) {
    const c10::Device device(openreg::kOpenReg, static_cast<c10::DeviceIndex>(i));
    at::Tensor leaf = at::zeros({}, at::TensorOptions(device));
    leaf.set_requires_grad(true).neg().backward();
  }
}

c10::CachingAllocator::Stat stat_of(int device, bool reserved) {
  return openreg::accounting().with_stats(static_cast<c10::DeviceIndex>(device), [&](auto& stats) {
    return reserved ? stats.reserved_bytes[0] : stats.allocated_bytes[0];
  });
}

}  // namespace

OPENREG_API const char* devprof_build_info(void) { return DEVPROF_BUILD_INFO; }
OPENREG_API const char* orLastError(void) { return last_error.c_str(); }

// --- life ----------------------------------------------------------------------------------------------------------------

OPENREG_API int orInit(int n_devices) {
  return guarded([&] {
    TORCH_CHECK(n_devices >= 1 && n_devices <= openreg::kMaxDevices, "openreg: ", n_devices,
                " devices asked for, it can be 1 to ", openreg::kMaxDevices);
    static bool is_done = false;
    TORCH_CHECK(!std::exchange(is_done, true), "openreg: initialized twice");
    openreg::n_devices = n_devices;
    follow_forks();
    c10::SetAllocator(openreg::kOpenReg, &openreg::allocator());
    at::setHostAllocator(openreg::kOpenReg, &openreg::pinned_allocator());
    c10::impl::registerDeviceGuard(openreg::kOpenReg, new openreg::Guard);
    at::RegisterPrivateUse1HooksInterface(new openreg::Hooks);
    openreg::register_operators();
  });
}

// Returns 1 once autograd's device threads have nothing left of the backwards so far, or 0 if that takes longer. Each thread
// serves one queue, so a backward behind the others is proof that those are gone, Python objects of their callers included.
OPENREG_API int orSettleAutograd(int64_t timeout_ms) {
  auto finished = std::make_shared<std::promise<void>>();
  std::thread passing([finished] {
    guarded(run_empty_backwards);
    finished->set_value();
  });
  const bool in_time = finished->get_future().wait_for(std::chrono::milliseconds(timeout_ms)) == std::future_status::ready;
  if (in_time) passing.join();
  else passing.detach();  // a backward of some other thread is stuck
  return in_time;
}

// Forgets the callbacks, and waits until no thread is inside one. Returns 0 if a call did not come back.
OPENREG_API int orShutdown(void) {
  const bool drained = openreg::drain_upcall.clear();
  return openreg::api_upcall.clear() && drained;
}

OPENREG_API void orSetDrainCallback(openreg::DrainCallback callback) { openreg::drain_upcall.set(callback); }
OPENREG_API void orSetApiCallback(openreg::ApiCallback callback) { openreg::api_upcall.set(callback); }

// --- ring ----------------------------------------------------------------------------------------------------------------

OPENREG_API size_t orRingDrain(void* out, size_t capacity_records) {
  return openreg::ring().drain(static_cast<openreg::Record*>(out), capacity_records);
}
OPENREG_API size_t orRingPending(void) { return openreg::ring().pending(); }
OPENREG_API uint64_t orRingDropped(void) { return openreg::ring().dropped(); }
OPENREG_API void orSetRingCapacity(size_t capacity_records) { openreg::ring().set_capacity(capacity_records); }
OPENREG_API size_t orRecordSize(void) { return sizeof(openreg::Record); }

// The name of an op, or null.
OPENREG_API const char* orOpName(uint32_t number) {
  const std::string* const name = openreg::op_names().find(number);
  return name ? name->c_str() : nullptr;
}

// Copies up to `capacity` numbers of a signature and returns how many it has: for each tensor argument its dtype (a number
// for `orDtypeName`), its dimension and its sizes.
OPENREG_API size_t orSignature(uint32_t number, int64_t* out, size_t capacity) {
  const openreg::Signature* const signature = openreg::signatures().find(number);
  if (!signature) return 0;
  std::copy_n(signature->data(), std::min(capacity, signature->size()), out);
  return signature->size();
}

OPENREG_API const char* orDtypeName(int64_t dtype) {
  thread_local std::string name;
  return (name = c10::getDtypeNames(static_cast<c10::ScalarType>(dtype)).first).c_str();
}

// --- devices, streams, events --------------------------------------------------------------------------------------------

OPENREG_API int orDeviceCount(void) { return openreg::n_devices; }
OPENREG_API int orCurrentDevice(void) { return openreg::current_device; }
OPENREG_API int orSetDevice(int device) {
  return guarded([&] { openreg::set_current_device(device); });
}
OPENREG_API int orCurrentStream(int device) {
  return device >= 0 && device < openreg::n_devices ? openreg::current_streams[device] : -1;
}
OPENREG_API uint64_t orEventCreate(void) { return openreg::next_event++; }
OPENREG_API void orEventRecord(uint64_t event, int device, int stream) {
  openreg::push_event_call(openreg::CallKind::EventRecord, event, device, stream);
}
OPENREG_API void orEventDestroy(uint64_t event) {
  openreg::push_event_call(openreg::CallKind::EventDestroy, event, openreg::current_device, 0);
}

// --- memory --------------------------------------------------------------------------------------------------------------

// What is asked: 0 allocated, 1 peak allocated, 2 reserved, 3 peak reserved. Bytes.
OPENREG_API int64_t orMemory(int device, int what) {
  const auto stat = stat_of(device, what >= 2);
  return what % 2 == 0 ? stat.current : stat.peak;
}
// A negative limit is the device's whole memory.
OPENREG_API void orSetMemoryLimit(int device, int64_t bytes) {
  openreg::accounting().set_limit(static_cast<c10::DeviceIndex>(device), bytes);
}
OPENREG_API void orMemoryInfo(int device, uint64_t* free, uint64_t* total) {
  std::tie(*free, *total) = openreg::accounting().free_and_total(static_cast<c10::DeviceIndex>(device));
}
OPENREG_API void orResetPeakMemory(int device) {
  openreg::allocator().resetPeakStats(static_cast<c10::DeviceIndex>(device));
}
OPENREG_API void orEmptyCache(void) { openreg::accounting().empty_cache(); }

// --- random numbers ------------------------------------------------------------------------------------------------------

OPENREG_API void orManualSeed(int device, uint64_t seed) {
  at::Generator(openreg::default_generator(device)).set_current_seed(seed);
}
OPENREG_API uint64_t orInitialSeed(int device) { return openreg::default_generator(device).current_seed(); }
OPENREG_API uint64_t orSeed(int device) { return at::Generator(openreg::default_generator(device)).seed(); }
// The state has as many bytes as a CPU generator's; copies up to `capacity` of them and returns how many there are.
OPENREG_API size_t orGetRngState(int device, void* out, size_t capacity) {
  const at::Tensor state = openreg::default_generator(device).get_state();
  if (out) std::memcpy(out, state.data_ptr(), std::min(capacity, state.nbytes()));
  return state.nbytes();
}
OPENREG_API int orSetRngState(int device, const void* state, size_t size) {
  return guarded([&] {
    at::Tensor copy = at::empty({static_cast<int64_t>(size)}, at::kByte);
    std::memcpy(copy.data_ptr(), state, size);
    at::Generator(openreg::default_generator(device)).set_state(copy);
  });
}

// --- correlation: the OpenRegTracer --------------------------------------------------------------------------------------

OPENREG_API void orTracerPush(uint32_t kind, uint64_t id) { openreg::push_correlation(kind, id); }
OPENREG_API void orTracerPop(uint32_t kind) { openreg::pop_correlation(kind, nullptr); }
OPENREG_API uint64_t orTracerTop(uint32_t kind) {
  const bool readable = openreg::tracing_enabled() && kind < openreg::kCorrelationKinds;
  return readable ? openreg::current_stacks().top(kind) : 0;
}
OPENREG_API uint64_t orTracerUnbalancedPops(void) { return openreg::unbalanced_pops; }

// openreg_activity.h says what these do.
OPENREG_API void orActivityEnableTracing(uint32_t kinds) { openreg::enable_tracing(kinds); }
OPENREG_API void orActivityDisableTracing(uint32_t kinds) { openreg::disable_tracing(kinds); }
OPENREG_API int orActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  return openreg::push_correlation(kind, id) ? 0 : 1;
}
OPENREG_API int orActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  return openreg::pop_correlation(kind, last) ? 0 : 1;
}
