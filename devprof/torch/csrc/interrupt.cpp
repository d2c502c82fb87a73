#include "interrupt.h"

#include <dlfcn.h>

#include <atomic>

namespace devprof {
namespace {

std::atomic<bool> g_noted{false};

} // namespace

void raiseNotedInterrupt() {
  if (!g_noted.load(std::memory_order_relaxed) || !g_noted.exchange(false)) {
    return;
  }
  // needs no GIL and no Python headers: it sets a flag that the main thread's next instruction looks at
  using SetInterrupt = void (*)();
  static const auto setInterrupt = reinterpret_cast<SetInterrupt>(dlsym(RTLD_DEFAULT, "PyErr_SetInterrupt"));
  if (setInterrupt != nullptr) {
    setInterrupt();
  }
}

void onMainThread(int (*call)(void*)) {
  // needs no GIL and no Python headers either
  using AddPendingCall = int (*)(int (*)(void*), void*);
  static const auto addPendingCall = reinterpret_cast<AddPendingCall>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  if (addPendingCall != nullptr) {
    addPendingCall(call, nullptr);
  }
}

} // namespace devprof

extern "C" __attribute__((visibility("default"))) void devprof_interrupt_later() {
  devprof::g_noted.store(true);
}
