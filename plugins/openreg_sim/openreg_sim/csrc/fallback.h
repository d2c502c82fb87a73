// Every operator without a kernel of its own: the CPU kernel runs on CPU tensors that share the device's memory.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include "device.h"
#include "names.h"

namespace openreg {

using c10::IValue;
using c10::OperatorHandle;
using Stack = torch::jit::Stack;

// --- what is known of an operator ----------------------------------------------------------------------------------------

struct OpInfo;
// Runs the operator on the CPU tensors on the stack and leaves its results there.
using RunOnCpu = void (*)(const OpInfo&, const OperatorHandle&, Stack&, int device);

enum class Role : uint8_t { Kernel, View, Copy, Zero, ReadScalar };

struct OpInfo {
  std::string name;
  size_t n_args = 0;
  uint32_t name_number = 0;
  Role role = Role::Kernel;
  bool is_foreach = false;
  bool host_waits = false;            // the host needs a value or a size that the device computes
  std::vector<bool> writes;           // per argument
  std::vector<bool> takes_cpu;        // per argument: host tensors of any size are fine
  int device_arg = -1;
  int generator_arg = -1;
  RunOnCpu run = nullptr;
  std::optional<OperatorHandle> stand_in;  // the operator that the CPU knows it by
};

inline void run_same_op(const OpInfo& info, const OperatorHandle& op, Stack& stack, int) {
  (info.stand_in ? *info.stand_in : op).redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

// CPU convolution wants the sizes of the bias, which the overrideable form lacks.
inline void run_convolution_backward(const OpInfo& info, const OperatorHandle& op, Stack& stack, int device) {
  const at::Tensor grad = torch::jit::peek(stack, 0, 10).toTensor(), weight = torch::jit::peek(stack, 2, 10).toTensor();
  const bool transposed = torch::jit::peek(stack, 6, 10).toBool();
  const int64_t groups = torch::jit::peek(stack, 8, 10).toInt();
  const int64_t n_out = transposed ? weight.size(1) * groups : weight.size(0);
  stack.insert(stack.end() - 7, IValue(std::vector<int64_t>{n_out}));
  run_same_op(info, op, stack, device);
}

// The CPU's dropout draws from the CPU's default generator; a device has its own.
inline void run_dropout(const OpInfo&, const OperatorHandle&, Stack& stack, int device) {
  const IValue train = torch::jit::peek(stack, 2, 3);
  const double p = torch::jit::peek(stack, 1, 3).toDouble();
  const at::Tensor input = torch::jit::peek(stack, 0, 3).toTensor();
  torch::jit::drop(stack, 3);
  if (!train.isNone() && !train.toBool()) {
    torch::jit::push(stack, input.clone(), at::ones_like(input, input.options().dtype(at::kBool)));
    return;
  }
  const auto& generator = static_cast<const Generator&>(*default_generator(device).unsafeGetGeneratorImpl());
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool)).bernoulli_(1 - p, generator.host());
  at::Tensor output = input.mul(mask).mul_(p == 1 ? 0.0 : 1.0 / (1.0 - p));
  torch::jit::push(stack, std::move(output), std::move(mask));
}

inline bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline void read_schema(OpInfo& info, const c10::FunctionSchema& schema) {
  info.n_args = schema.arguments().size();
  bool mutates = false;
  for (const c10::Argument& arg : schema.arguments()) {
    const bool writes = arg.alias_info() && arg.alias_info()->isWrite();
    const int at = static_cast<int>(info.writes.size());
    mutates |= writes;
    info.writes.push_back(writes);
    // Index tensors may lie on the host, as for CUDA; lengths and the scalars of foreach ops must.
    const bool is_index = arg.name() == "indices" && arg.type()->kind() == c10::TypeKind::ListType;
    info.takes_cpu.push_back(is_index || is_one_of(arg.name(), {"lengths", "batch_sizes", "input_lengths", "target_lengths",
                                                                "scalars", "ratios"}));
    if (arg.name() == "device") info.device_arg = at;
    if (arg.name() == "generator") info.generator_arg = at;
  }
  bool all_alias = !schema.returns().empty();
  for (const c10::Argument& result : schema.returns()) all_alias &= result.alias_info() && !result.alias_info()->isWrite();
  if (all_alias && !mutates) info.role = Role::View;
}

inline OpInfo* make_op_info(const OperatorHandle& op) {
  auto* info = new OpInfo;
  const std::string& full = info->name = op.operator_name().name;
  info->name_number = op_names().intern(full);
  info->run = &run_same_op;
  read_schema(*info, op.schema());
  if (op.hasTag(at::Tag::inplace_view) || full == "aten::set_") info->role = Role::View;
  info->is_foreach = full.starts_with("aten::_foreach_");
  if (full == "aten::copy_") info->role = Role::Copy;
  if (full == "aten::zero_") info->role = Role::Zero;
  if (full == "aten::_local_scalar_dense") info->role = Role::ReadScalar;
  info->host_waits = is_one_of(full, {"aten::equal", "aten::nonzero", "aten::masked_select", "aten::_unique2",
                                      "aten::unique_dim", "aten::unique_consecutive", "aten::repeat_interleave"});
  auto& dispatcher = c10::Dispatcher::singleton();
  if (full == "aten::native_dropout") info->run = &run_dropout;
  if (full == "aten::convolution_overrideable") info->stand_in = dispatcher.findSchemaOrThrow("aten::convolution", "");
  if (full == "aten::convolution_backward_overrideable") {
    info->stand_in = dispatcher.findSchemaOrThrow("aten::convolution_backward", "");
    info->run = &run_convolution_backward;
  }
  return info;
}

// Looked up by the address of the schema; a custom op may be defined again at an old address, hence the check.
using OpInfos = std::unordered_map<const void*, const OpInfo*>;

inline bool fits(const OpInfo* info, const OperatorHandle& op) {
  return info && info->n_args == op.schema().arguments().size() && info->name == op.operator_name().name;
}

inline const OpInfo* shared_info_of(const OperatorHandle& op) {
  static OpInfos* const infos = new OpInfos;
  const Hold lock(Lock::OpInfos);
  const OpInfo*& info = (*infos)[&op.schema()];
  if (!fits(info, op)) info = make_op_info(op);
  return info;
}

inline const OpInfo& info_of(const OperatorHandle& op) {
  static thread_local OpInfos infos;
  const OpInfo*& info = infos[&op.schema()];
  if (!fits(info, op)) info = shared_info_of(op);
  return *info;
}

// --- sharing memory between a device tensor and a CPU tensor -------------------------------------------------------------

// The same functionality on another backend. Autocast has a key of its own for each backend, and Python was here before.
inline c10::DispatchKeySet move_keys(c10::DispatchKeySet keys, c10::BackendComponent from, c10::BackendComponent to) {
  constexpr c10::DispatchKeySet python({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot});
  const auto moved = keys.remove_backend(from) | c10::DispatchKeySet(to);
  return (moved - python - c10::autocast_dispatch_keyset) | c10::getAutocastRelatedKeySetFromBackend(to);
}

// A tensor with the layout of `like` over another storage.
inline at::Tensor same_layout(c10::Storage storage, const at::Tensor& like, c10::DispatchKeySet keys) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, std::move(storage), keys, like.dtype());
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return at::Tensor(std::move(impl));
}

struct SharedStorage {
  c10::Storage device;
  c10::Storage cpu;
  const void* data;
  size_t size;
};

struct SharedTensor {
  at::Tensor device;
  at::Tensor cpu;
  bool written;
};

// Finds a position by an address: a few by looking, many (foreach ops) by a table.
class AddressIndex {
 public:
  void add(const void* address, size_t position) {
    if (entries_.size() == kFew && !table_) table_ = std::make_unique<Table>(entries_.begin(), entries_.end());
    if (table_) table_->emplace(address, position);
    else entries_.emplace_back(address, position);
  }
  // The position, or -1.
  ptrdiff_t find(const void* address) const {
    if (table_) {
      const auto found = table_->find(address);
      return found == table_->end() ? -1 : static_cast<ptrdiff_t>(found->second);
    }
    for (const auto& [known, position] : entries_) {
      if (known == address) return static_cast<ptrdiff_t>(position);
    }
    return -1;
  }

 private:
  using Table = std::unordered_map<const void*, size_t>;
  static constexpr size_t kFew = 16;
  c10::SmallVector<std::pair<const void*, size_t>, kFew> entries_;
  std::unique_ptr<Table> table_;
};

// --- one call ------------------------------------------------------------------------------------------------------------

class Call {
 public:
  Call(const OpInfo& info, const OperatorHandle& op, Stack& stack)
      : info_(info), op_(op), stack_(stack), first_arg_(stack.size() - info.n_args) {}

  void run() {
    if (info_.role == Role::Copy) note_copy();
    share_arguments();
    if (info_.role != Role::View) make_call();
    {
      const NoProfilerState no_memory_events;
      std::optional<at::DisableRecordFunctionGuard> no_inner_ops;
      if (at::hasCallbacks()) no_inner_ops.emplace();  // it costs a tenth of a small op
      const c10::impl::ExcludeDispatchKeyGuard only_numerics(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                             c10::autocast_dispatch_keyset);
      info_.run(info_, op_, stack_, device_);
    }
    repair_arguments();
    take_over_results();
    queue();
  }

 private:
  // Before: device tensors, storages and generators on the stack become CPU ones.
  void share_arguments() {
    for (size_t i = 0; i < info_.n_args; ++i) {
      argument_ = i;
      IValue& value = stack_[first_arg_ + i];
      if (value.isTensor()) {
        if (is_device(value)) value = share(value.toTensor());
        else see_cpu(value.toTensor());
      } else if (value.isTensorList() || value.isOptionalTensorList()) {
        value = share_list(value);
      } else if (value.isStorage() && value.toStorage().device_type() == kOpenReg) {
        value = IValue(share(value.toStorage()).cpu);
      }
    }
    choose_device();
    check_cpu_arguments();
    swap_generator();
  }

  static bool is_device(const IValue& value) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() && tensor.device().type() == kOpenReg;
  }

  IValue share_list(const IValue& value) {
    if (value.isTensorList()) {
      c10::List<at::Tensor> out;
      out.reserve(value.toListRef().size());
      for (const IValue& item : value.toListRef()) {
        if (!is_device(item)) see_cpu(item.toTensor());
        out.push_back(is_device(item) ? share(item.toTensor()) : item.toTensor());
      }
      return out;
    }
    c10::List<std::optional<at::Tensor>> out;
    for (const IValue& item : value.toListRef()) {
      if (item.isNone()) out.push_back(std::nullopt);
      else if (is_device(item)) out.push_back(share(item.toTensor()));
      else see_cpu(item.toTensor()), out.push_back(item.toTensor());
    }
    return out;
  }

  // CPU tensors among the arguments: scalars are fine everywhere, others only where the operator says so.
  void see_cpu(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const bool fine = !info_.writes[argument_] && (tensor.dim() == 0 || info_.takes_cpu[argument_]);
    if (!fine && !misplaced_) misplaced_ = tensor.device();
  }

  void check_cpu_arguments() {
    TORCH_CHECK(!misplaced_ || tensors_.empty() || info_.role == Role::Copy,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                c10::Device(kOpenReg, static_cast<c10::DeviceIndex>(device_)), " and ", *misplaced_, "! (when calling ",
                info_.name, ")");
  }

  SharedStorage& share(const c10::Storage& storage) {
    c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
    const ptrdiff_t known = storage_index_.find(impl);
    if (known >= 0) return storages_[known];
    const c10::DataPtr& data = impl->mutable_data_ptr();
    const size_t size = impl->nbytes();
    TORCH_CHECK(data.get() || size == 0, "openreg: ", info_.name, " got a tensor without memory");
    auto keep_alive = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl);
    c10::DataPtr view(data.get(), keep_alive.release(),
                      [](void* owner) { c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(owner)); },
                      c10::Device(c10::DeviceType::CPU));
    c10::Storage cpu(c10::Storage::use_byte_size_t(), static_cast<int64_t>(size), std::move(view), c10::GetAllocator(c10::DeviceType::CPU), true);
    storage_index_.add(impl, storages_.size());
    storage_index_.add(cpu.unsafeGetStorageImpl(), storages_.size());
    storages_.push_back({storage, std::move(cpu), data.get(), size});
    return storages_.back();
  }

  at::Tensor share(const at::Tensor& tensor) {
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    see_device(tensor.device());
    if (info_.role != Role::View) signature_.add(tensor);
    const ptrdiff_t known = tensor_index_.find(impl);
    if (known >= 0) {
      tensors_[known].written |= info_.writes[argument_];
      return tensors_[known].cpu;
    }
    check_is_plain(tensor, "got");
    at::Tensor cpu = same_layout(share(tensor.storage()).cpu, tensor,
                                 move_keys(tensor.key_set(), c10::BackendComponent::PrivateUse1Bit, c10::BackendComponent::CPUBit));
    tensor_index_.add(impl, tensors_.size());
    tensor_index_.add(cpu.unsafeGetTensorImpl(), tensors_.size());
    tensors_.push_back({tensor, cpu, info_.writes[argument_]});
    return cpu;
  }

  void check_is_plain(const at::Tensor& tensor, const char* gets_or_makes) const {
    const bool is_plain = tensor.layout() == c10::kStrided && !tensor.is_nested() && !tensor.is_quantized() && tensor.has_storage();
    TORCH_CHECK_NOT_IMPLEMENTED(is_plain, "openreg: ", info_.name, " ", gets_or_makes, " a tensor that is ",
                                tensor.is_nested() ? "nested" : tensor.is_quantized() ? "quantized" : "not strided",
                                ", the device has dense strided tensors only");
  }

  void see_device(c10::Device device) {
    if (device_ < 0) device_ = device.index();
    if (device.index() != device_ && !misplaced_) misplaced_ = device;
  }

  // A `device` argument decides where fresh results go; without one they go where the arguments are.
  void choose_device() {
    if (info_.device_arg >= 0) {
      IValue& value = stack_[first_arg_ + info_.device_arg];
      if (value.isDevice()) {
        const c10::Device device = value.toDevice();
        results_stay_on_cpu_ = device.is_cpu();
        if (device.type() == kOpenReg) {
          result_device_ = device.has_index() ? device.index() : current_device;
          check_device(result_device_);
          value = c10::Device(c10::DeviceType::CPU);
        }
      }
    }
    if (device_ < 0) device_ = result_device_ < 0 ? current_device : result_device_;
    if (result_device_ < 0) result_device_ = device_;
  }

  void swap_generator() {
    if (info_.generator_arg < 0) return;
    IValue& value = stack_[first_arg_ + info_.generator_arg];
    const at::Generator generator = value.isNone() ? default_generator(device_) : value.toGenerator();
    TORCH_CHECK(generator.device().type() == kOpenReg, "Expected a 'openreg' device type for generator but found '",
                generator.device().type(), "'");
    value = static_cast<const Generator&>(*generator.unsafeGetGeneratorImpl()).host();
  }

  // After: results become device tensors. A result is an argument, a view of one, or fresh memory.
  void take_over_results() {
    const size_t n_results = op_.schema().returns().size();
    for (size_t i = stack_.size() - n_results; i < stack_.size(); ++i) {
      IValue& value = stack_[i];
      if (value.isTensor()) {
        value = to_device(std::move(value).toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list = std::move(value).toTensorList(), out;
        out.reserve(list.size());
        for (size_t k = 0; k < list.size(); ++k) out.push_back(to_device(list.extract(k)));
        value = std::move(out);
      }
    }
  }

  at::Tensor to_device(at::Tensor cpu) {
    if (!cpu.defined() || !cpu.is_cpu()) return cpu;
    const ptrdiff_t known = tensor_index_.find(cpu.unsafeGetTensorImpl());
    if (known >= 0) return tensors_[known].device;
    check_is_plain(cpu, "makes");
    const auto keys = move_keys(cpu.key_set(), c10::BackendComponent::CPUBit, c10::BackendComponent::PrivateUse1Bit);
    const ptrdiff_t shared = storage_index_.find(cpu.storage().unsafeGetStorageImpl());
    if (shared >= 0) return same_layout(storages_[shared].device, cpu, keys);
    if (results_stay_on_cpu_) return cpu;
    at::Tensor out = same_layout(adopt(cpu), cpu, keys);
    if (!out.is_inference()) out.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(0));
    is_fresh_ = true;
    return out;
  }

  // Fresh memory is taken without a copy, unless somebody else still holds it (such as a constant that a kernel caches).
  c10::Storage adopt(at::Tensor& cpu) {
    if (cpu.use_count() > 1 || cpu.storage().use_count() > 1 + results_in(cpu.storage())) {
      const NoProfilerState no_memory_events;
      const at::DisableRecordFunctionGuard no_inner_ops;
      cpu = cpu.clone();
    }
    const c10::Storage& from = cpu.storage();
    const size_t size = from.nbytes();
    c10::DataPtr data = from.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr());
    c10::Storage to(c10::Storage::use_byte_size_t(), static_cast<int64_t>(size),
                    adopt_memory(std::move(data), size, static_cast<c10::DeviceIndex>(result_device_)), &allocator(), true);
    storage_index_.add(from.unsafeGetStorageImpl(), storages_.size());  // further results may be views of it
    storages_.push_back({to, from, nullptr, size});
    return to;
  }

  // How many results that are still to be taken over lie in this memory.
  size_t results_in(const c10::Storage& storage) const {
    const auto lies_in = [&](const IValue& value) {
      return value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage() &&
             value.toTensor().storage().is_alias_of(storage);
    };
    size_t n = 0;
    for (size_t i = stack_.size() - op_.schema().returns().size(); i < stack_.size(); ++i) {
      if (!stack_[i].isTensorList()) n += lies_in(stack_[i]);
      else for (const IValue& item : stack_[i].toListRef()) n += lies_in(item);
    }
    return n;
  }

  // Arguments that the kernel resized, gave other memory or reshaped.
  void repair_arguments() {
    for (SharedStorage& storage : storages_) {
      c10::StorageImpl& cpu = *storage.cpu.unsafeGetStorageImpl();
      if (cpu.data() == storage.data && cpu.nbytes() == storage.size) continue;
      c10::StorageImpl& device = *storage.device.unsafeGetStorageImpl();
      const size_t size = cpu.nbytes();
      if (cpu.data() != storage.data) {
        device.set_data_ptr_noswap(adopt_memory(cpu.set_data_ptr(c10::DataPtr()), size, device.device().index()));
      }
      device.set_nbytes(size);
    }
    for (SharedTensor& tensor : tensors_) {
      if (tensor.written) repair(tensor);
    }
  }

  void repair(SharedTensor& tensor) {
    c10::TensorImpl& device = *tensor.device.unsafeGetTensorImpl();
    const ptrdiff_t shared = storage_index_.find(tensor.cpu.storage().unsafeGetStorageImpl());
    const c10::Storage storage = shared >= 0 ? storages_[shared].device : adopt(tensor.cpu);
    if (!storage.is_alias_of(device.storage())) device.set_storage_keep_dtype(storage);
    if (tensor.cpu.sizes() != device.sizes() || tensor.cpu.strides() != device.strides() ||
        tensor.cpu.storage_offset() != device.storage_offset()) {
      device.set_sizes_and_strides(tensor.cpu.sizes(), tensor.cpu.strides(), tensor.cpu.storage_offset());
    }
  }

  // The call of the device as the host's clock sees it: well inside the op's own interval, and before the numerics, which a
  // real device would not make the host wait for.
  void make_call() {
    record_ = make_record(CallKind::Launch, device_, current_streams[device_], unix_ns());
    record_.name = info_.name_number;
    record_.signature = signature_.number();
    record_.host_end_ns = unix_ns();
  }

  // What the device is told. Only work is: a call that made fresh memory or wrote to an argument.
  void queue() {
    if (info_.role == Role::View) return;
    if (info_.role == Role::Copy) return queue_copy();
    if (info_.role == Role::ReadScalar) return queue_read();
    bool works = is_fresh_ || info_.host_waits;
    for (const SharedTensor& tensor : tensors_) works |= tensor.written;
    if (!works) return;
    if (info_.role == Role::Zero && tensors_[0].device.is_non_overlapping_and_dense()) {
      become(CallKind::Memset, static_cast<int64_t>(tensors_[0].device.nbytes()));
    }
    ring().push(record_);
    if (info_.host_waits) wait_for_stream();
  }

  void become(CallKind kind, int64_t bytes) {
    record_.kind = kind;
    record_.bytes = bytes;
    record_.name = record_.signature = 0;
  }

  void queue_read() {
    become(CallKind::Memcpy, tensors_.empty() ? 0 : static_cast<int64_t>(tensors_[0].device.itemsize()));
    record_.copy_kind = CopyKind::DeviceToHost;
    ring().push(record_);
    wait_for_stream();
  }

  void wait_for_stream() const { call_runtime(ApiCall::StreamSynchronize, device_, current_streams[device_]); }

  // `copy_(to, from, non_blocking)`. Between devices both streams wait for each other, and a copy from or to the host is
  // waited for unless the caller says otherwise, both as in CUDA.
  void note_copy() {
    const at::Tensor& to = stack_[first_arg_].toTensor();
    const at::Tensor& from = stack_[first_arg_ + 1].toTensor();
    results_stay_on_cpu_ = true;
    copy_.to = to.device();
    copy_.from = from.device();
    copy_.bytes = static_cast<int64_t>(std::min(to.nbytes(), from.nbytes()));
    copy_.waits = !stack_[first_arg_ + 2].toBool();
    copy_.is_plain = to.dtype() == from.dtype() && to.sizes() == from.sizes() && to.strides() == from.strides() &&
                     to.is_non_overlapping_and_dense() && to.is_conj() == from.is_conj() && to.is_neg() == from.is_neg();
    if (copy_.between_devices()) order_copy(copy_.from, copy_.to);
  }

  void order_copy(c10::Device first, c10::Device then) const {
    if (copy_.bytes == 0) return;
    order_streams(first.index(), current_streams[first.index()], then.index(), current_streams[then.index()]);
  }

  void queue_copy() {
    if (copy_.bytes == 0) return;
    if (copy_.to == copy_.from && !copy_.is_plain) return ring().push(record_);
    become(CallKind::Memcpy, copy_.bytes);
    record_.copy_kind = copy_.kind();
    if (copy_.between_devices()) record_.peer = copy_.from.index();
    ring().push(record_);
    if (copy_.between_devices()) order_copy(copy_.to, copy_.from);
    const bool with_host = copy_.to.is_cpu() || copy_.from.is_cpu();
    if (with_host && copy_.waits) wait_for_stream();
  }

  struct Copy {
    c10::Device to{c10::DeviceType::CPU}, from{c10::DeviceType::CPU};
    int64_t bytes = 0;
    bool waits = false;
    bool is_plain = false;

    bool between_devices() const { return to.type() == kOpenReg && from.type() == kOpenReg && to != from; }
    CopyKind kind() const {
      if (from.is_cpu()) return CopyKind::HostToDevice;
      if (to.is_cpu()) return CopyKind::DeviceToHost;
      return to == from ? CopyKind::DeviceToDevice : CopyKind::PeerToPeer;
    }
  };

  const OpInfo& info_;
  const OperatorHandle& op_;
  Stack& stack_;
  const size_t first_arg_;
  size_t argument_ = 0;
  int device_ = -1;         // where the work is queued
  int result_device_ = -1;  // where fresh results live
  bool results_stay_on_cpu_ = false;
  bool is_fresh_ = false;
  std::optional<c10::Device> misplaced_;
  Copy copy_;
  Record record_{};
  c10::SmallVector<SharedStorage, 6> storages_;
  c10::SmallVector<SharedTensor, 6> tensors_;
  AddressIndex storage_index_, tensor_index_;  // by the address on either side
  SignatureBuilder signature_;
};

// Foreach ops over several devices: the composite kernel works on one tensor after the other, as it does for CUDA.
inline bool spans_devices(const OpInfo& info, const Stack& stack) {
  std::optional<c10::Device> first;
  for (size_t i = stack.size() - info.n_args; i < stack.size(); ++i) {
    if (!stack[i].isTensorList()) continue;
    for (const IValue& item : stack[i].toListRef()) {
      if (first.value_or(item.toTensor().device()) != item.toTensor().device()) return true;
      first = item.toTensor().device();
    }
  }
  return false;
}

inline void fallback(const OperatorHandle& op, Stack* stack) {
  const OpInfo& info = info_of(op);
  constexpr auto composite = c10::DispatchKey::CompositeExplicitAutograd;
  if (info.is_foreach && op.hasKernelForDispatchKey(composite) && spans_devices(info, *stack)) {
    return c10::Dispatcher::singleton().callBoxedForDispatchKey(op, composite, stack);
  }
  Call(info, op, *stack).run();
}

}  // namespace openreg
