// The device as torch's generic code sees it: guard (devices, streams, events), hooks, generators.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "memory.h"
#include "ring.h"

namespace openreg {

inline thread_local std::array<int, kMaxDevices> current_streams{};
inline std::array<std::atomic<int>, kMaxDevices> n_streams{};  // beside the default stream, which is 0

inline void set_current_device(int device) {
  check_device(device);
  current_device = static_cast<c10::DeviceIndex>(device);
}

inline int new_stream(int device) {
  check_device(device);
  return ++n_streams[device];
}

// Makes everything queued on one stream so far a condition for what is queued on another from now on.
inline void order_streams(int from_device, int from_stream, int to_device, int to_stream) {
  const uint64_t event = next_event++;
  push_event_call(CallKind::EventRecord, event, from_device, from_stream);
  push_event_call(CallKind::StreamWaitEvent, event, to_device, to_stream);
  push_event_call(CallKind::EventDestroy, event, from_device, from_stream);
}

// A blocking call or a query, answered by the runtime in Python. Without a runtime the device is always done.
inline double call_runtime(ApiCall call, int64_t a, int64_t b = 0) {
  double answer = 1.0;
  char error[512] = "";
  api_upcall.with([&](ApiCallback api) { answer = api(static_cast<int32_t>(call), a, b, error, sizeof error); });
  if (error[0] == kInterrupted) raise(SIGINT);
  else TORCH_CHECK(error[0] == '\0', "openreg: ", error);
  return answer;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kOpenReg; }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(n_devices); }
  c10::Device getDevice() const override { return {kOpenReg, current_device}; }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index() && device.index() < n_devices) current_device = device.index();
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device device) const override { return stream_of(device, current_streams[index_of(device)]); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override { return stream_of(device, new_stream(index_of(device))); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    TORCH_CHECK(stream.id() >= 0 && stream.id() <= n_streams[stream.device_index()], "openreg: there is no ", stream);
    current_streams[stream.device_index()] = static_cast<int>(stream.id());
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return reinterpret_cast<void*>(stream.id()); }
  bool queryStream(const c10::Stream& stream) const override {
    return call_runtime(ApiCall::StreamQuery, stream.device_index(), stream.id()) != 0;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    call_runtime(ApiCall::StreamSynchronize, stream.device_index(), stream.id());
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    check_device(device);
    call_runtime(ApiCall::DeviceSynchronize, device);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = reinterpret_cast<void*>(next_event++);
    push_event_call(CallKind::EventRecord, id_of(*event), stream.device_index(), static_cast<int>(stream.id()));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) push_event_call(CallKind::StreamWaitEvent, id_of(event), stream.device_index(), static_cast<int>(stream.id()));
  }
  void destroyEvent(void* event, const c10::DeviceIndex device) const noexcept override {
    if (event) push_event_call(CallKind::EventDestroy, id_of(event), device, 0);
  }
  bool queryEvent(void* event) const override {
    return !event || call_runtime(ApiCall::EventQuery, static_cast<int64_t>(id_of(event))) != 0;
  }
  void synchronizeEvent(void* event) const override {
    if (event) call_runtime(ApiCall::EventSynchronize, static_cast<int64_t>(id_of(event)));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    return call_runtime(ApiCall::EventElapsed, static_cast<int64_t>(id_of(start)), static_cast<int64_t>(id_of(end)));
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

 private:
  static uint64_t id_of(void* event) { return reinterpret_cast<uint64_t>(event); }
  static int index_of(c10::Device device) {
    const int index = device.has_index() ? device.index() : current_device;
    check_device(index);
    return index;
  }
  static c10::Stream stream_of(c10::Device device, int id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kOpenReg, static_cast<c10::DeviceIndex>(index_of(device))), id);
  }
};

// Random numbers of a device: a CPU generator of its own, which the fallback hands to the CPU kernels.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex device, at::Generator host = at::detail::createCPUGenerator())
      : GeneratorImpl(c10::Device(kOpenReg, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {}

  const at::Generator& host() const { return host_; }
  std::mutex& mutex() const { return impl().mutex_; }  // CPU kernels hold it while they draw

  void set_current_seed(uint64_t seed) override {
    const auto lock = guard();
    impl().set_current_seed(seed);
  }
  void set_offset(uint64_t offset) override { impl().set_offset(offset); }
  uint64_t get_offset() const override { return impl().get_offset(); }
  uint64_t current_seed() const override {
    const auto lock = guard();
    return impl().current_seed();
  }
  uint64_t seed() override {
    const auto lock = guard();
    return impl().seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    const auto lock = guard();
    impl().set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto lock = guard();
    return impl().get_state();
  }

 private:
  std::lock_guard<std::mutex> guard() const { return std::lock_guard<std::mutex>(mutex()); }
  c10::GeneratorImpl& impl() const { return *host_.unsafeGetGeneratorImpl(); }
  Generator* clone_impl() const override { return new Generator(device_.index(), host_.clone()); }

  at::Generator host_;
};

inline const std::vector<at::Generator>& default_generators() {
  static const auto* const generators = [] {
    auto* all = new std::vector<at::Generator>;
    for (int i = 0; i < kMaxDevices; ++i) all->push_back(at::make_generator<Generator>(static_cast<c10::DeviceIndex>(i)));
    return all;
  }();
  return *generators;
}

inline const at::Generator& default_generator(int device) {
  const int index = device < 0 ? current_device : device;
  check_device(index);
  return default_generators()[index];
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return n_devices > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(n_devices); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device;
    set_current_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? current_device : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    const int index = device < 0 ? current_device : device;
    check_device(index);
    return at::make_generator<Generator>(static_cast<c10::DeviceIndex>(index));
  }
  at::Device getDeviceFromPtr(void*) const override { return {kOpenReg, current_device}; }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::owns(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
    const DeviceScope scope(impl.device().index());
    c10::DataPtr data = allocator().allocate(size);
    const size_t kept = std::min(size, impl.nbytes());
    if (kept != 0) std::memcpy(data.get(), impl.data(), kept);
    impl.set_data_ptr_noswap(std::move(data));
    impl.set_nbytes(size);
  }
};

}  // namespace openreg
