// What the dispatcher is told: which operators have kernels of their own, which fall back, which autocast casts.
#pragma once

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <set>

#include "fallback.h"

namespace openreg {

// --- kernels of our own --------------------------------------------------------------------------------------------------

inline DeviceScope on_device(std::optional<c10::Device> device) {
  return DeviceScope(device && device->has_index() ? device->index() : current_device);
}

constexpr c10::DispatchKeySet kDeviceKeys(c10::DispatchKey::PrivateUse1);

inline void check_factory(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::kStrided) == c10::kStrided, "openreg: the device has dense strided tensors only");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

inline at::Tensor empty(at::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                        std::optional<c10::Device> device, std::optional<bool> pin_memory,
                        std::optional<c10::MemoryFormat> format) {
  check_factory(layout, pin_memory);
  const auto scope = on_device(device);
  return at::detail::empty_generic(size, &allocator(), kDeviceKeys, c10::dtype_or_default(dtype), format);
}

inline at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                                std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                                std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  const auto scope = on_device(device);
  return at::detail::empty_strided_generic(size, stride, &allocator(), kDeviceKeys, c10::dtype_or_default(dtype));
}

// A ZeroTensor has no memory to read.
inline void copy(const OperatorHandle& op, Stack* stack) {
  const at::Tensor& from = torch::jit::peek(*stack, 1, 3).toTensor();
  if (!from._is_zerotensor()) return fallback(op, stack);
  at::Tensor to = torch::jit::peek(*stack, 0, 3).toTensor();
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, to.zero_());
}

inline at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  return at::Tensor(to).copy_(from, non_blocking);
}

inline at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::Tensor out = to;
  return out.resize_(from.sizes()).copy_(from);
}

inline void record_stream(at::Tensor&, c10::Stream) {}  // see Allocator::recordStream

// The fused cells have no CPU kernel. Without gradients of their own, these serve for training too.
inline at::Tensor with_bias(const at::Tensor& gates, const std::optional<at::Tensor>& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

inline std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                                const at::Tensor& cell, const std::optional<at::Tensor>& input_bias,
                                                                const std::optional<at::Tensor>& hidden_bias) {
  const at::Tensor gates = with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias);
  const auto parts = gates.chunk(4, 1);
  const at::Tensor next_cell = parts[1].sigmoid() * cell + parts[0].sigmoid() * parts[2].tanh();
  return {parts[3].sigmoid() * next_cell.tanh(), next_cell, at::empty({0}, cell.options())};
}

inline std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                   const at::Tensor& hidden, const std::optional<at::Tensor>& input_bias,
                                                   const std::optional<at::Tensor>& hidden_bias) {
  const auto input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto recurrent = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = (input[0] + recurrent[0]).sigmoid();
  const at::Tensor update = (input[1] + recurrent[1]).sigmoid();
  const at::Tensor fresh = (input[2] + reset * recurrent[2]).tanh();
  return {(hidden - fresh) * update + fresh, at::empty({0}, hidden.options())};
}

// --- autocast ------------------------------------------------------------------------------------------------------------

enum class Cast { Lower, Float, FloatResult, Widest };

inline at::ScalarType widest_type(const Stack& stack, size_t first) {
  at::ScalarType type = at::autocast::get_autocast_dtype(kOpenReg);
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack[i].isTensor()) type = at::autocast::prioritize(type, stack[i].toTensor(), kOpenReg);
    if (stack[i].isTensorList()) type = at::autocast::prioritize(type, at::TensorList(stack[i].toTensorVector()), kOpenReg);
  }
  return type;
}

inline void cast_arguments(Stack& stack, size_t first, at::ScalarType type) {
  const auto cast = [type](const at::Tensor& tensor) { return at::autocast::cached_cast(type, tensor, kOpenReg); };
  for (size_t i = first; i < stack.size(); ++i) {
    IValue& value = stack[i];
    if (value.isTensor() && value.toTensor().defined()) {
      value = cast(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(cast(tensor));
      value = std::move(list);
    }
  }
}

// Ops such as softmax and sum get a float32 result through their `dtype` argument, unless the caller chose a type.
inline void ask_for_float(const OperatorHandle& op, Stack& stack, size_t first) {
  if (!at::autocast::is_eligible(stack[first].toTensor(), kOpenReg)) return;
  const auto at = op.schema().argumentIndexWithName("dtype");
  if (at && stack[first + *at].isNone()) stack[first + *at] = at::kFloat;
}

template <Cast policy>
void autocast(const OperatorHandle& op, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(c10::DispatchKey::AutocastPrivateUse1);
  const size_t first = stack->size() - op.schema().arguments().size();
  if (policy == Cast::Lower) cast_arguments(*stack, first, at::autocast::get_autocast_dtype(kOpenReg));
  if (policy == Cast::Float) cast_arguments(*stack, first, at::kFloat);
  if (policy == Cast::Widest) cast_arguments(*stack, first, widest_type(*stack, first));
  if (policy == Cast::FloatResult) ask_for_float(op, *stack, first);
  op.callBoxed(stack);
}

// torch's own lists, as names: `_(op)` and `_(op, overload)`.
#define OPENREG_NAME1(op) "aten::" #op,
#define OPENREG_NAME2(op, overload) "aten::" #op "." #overload,
#define OPENREG_PICK(_1, _2, name, ...) name
#define OPENREG_NAME(...) OPENREG_PICK(__VA_ARGS__, OPENREG_NAME2, OPENREG_NAME1)(__VA_ARGS__)

template <Cast policy>
void register_casts(torch::Library& library, std::initializer_list<const char*> names) {
  for (const char* name : names) library.impl(name, torch::CppFunction::makeFromBoxedFunction<&autocast<policy>>());
}

inline void register_autocast() {
  auto* all = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  all->fallback(torch::CppFunction::makeFallthrough());
  auto* aten = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  register_casts<Cast::Lower>(*aten, {AT_FORALL_LOWER_PRECISION_FP(OPENREG_NAME)});
  register_casts<Cast::Float>(*aten, {AT_FORALL_FP32(OPENREG_NAME) "aten::norm.Scalar", "aten::norm.ScalarOpt_dim",
                                      "aten::binary_cross_entropy"});
  register_casts<Cast::FloatResult>(*aten, {AT_FORALL_FP32_SET_OPT_DTYPE(OPENREG_NAME)});
  register_casts<Cast::Widest>(*aten, {AT_FORALL_PROMOTE(OPENREG_NAME) "aten::cat", "aten::stack"});
}

// --- registration --------------------------------------------------------------------------------------------------------

using FallbackKernel = void (*)(const OperatorHandle&, Stack*);

inline torch::CppFunction boxed_fallback() { return torch::CppFunction::makeFromBoxedFunction<&fallback>(); }

// Ops for which torch has a CPU kernel and a composite one. The composite one would win, and show as several ops.
inline bool has_better_cpu_kernel(const OperatorHandle& op) {
  if (op.operator_name().name.starts_with("aten::_foreach_")) return true;  // a device runs those as one kernel
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
          op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd));
}

inline void register_operators() {
  auto* all = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all->fallback(boxed_fallback());

  auto* aten = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  aten->impl("empty.memory_format", &empty);
  aten->impl("empty_strided", &empty_strided);
  aten->impl("copy_", torch::CppFunction::makeFromBoxedFunction<&copy>());
  aten->impl("_copy_from", &copy_from);
  aten->impl("_copy_from_and_resize", &copy_from_and_resize);
  aten->impl("record_stream", &record_stream);
  for (const char* name : {"set_.source_Tensor", "convolution_overrideable", "convolution_backward_overrideable"}) {
    aten->impl(name, boxed_fallback());
  }
  aten->impl("_thnn_fused_lstm_cell", &lstm_cell);
  aten->impl("_thnn_fused_gru_cell", &gru_cell);
  auto* autograd = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  autograd->impl("_thnn_fused_lstm_cell", &lstm_cell);
  autograd->impl("_thnn_fused_gru_cell", &gru_cell);

  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !name.name.starts_with("aten::") || op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    if (has_better_cpu_kernel(*op)) aten->impl(toString(name).c_str() + 6, boxed_fallback());
  }
  register_autocast();
}

}  // namespace openreg
