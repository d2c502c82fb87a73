// The C ABI, for ctypes.PyDLL: every function is called with the GIL, and may leave a Python exception.
#include <Python.h>

#include <cstdint>
#include <memory>
#include <new>

#include "hooks.h"
#include "session.h"

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::unique_ptr<devprof::Session> current;  // recording, or recorded and not yet dropped

template <typename Item, typename Make>
PyObject* list_of(const std::vector<Item>& items, Make make) {
  PyObject* const list = PyList_New(static_cast<Py_ssize_t>(items.size()));
  if (list == nullptr) return nullptr;
  for (size_t i = 0; i < items.size(); ++i) {
    PyObject* const item = make(items[i]);
    if (item == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

}  // namespace

DEVPROF_EXPORT const char* devprof_build_info(void) { return DEVPROF_BUILD_INFO; }

DEVPROF_EXPORT int64_t devprof_functions_now(void) { return devprof::now(); }

// Makes the session and switches the hooks on. Returns the number of threads that another profiler holds, -1 with an
// exception.
//
// Args:
//   budget: calls to record.
//   module_index: (frame) -> index of the module whose call the frame is, or -1.
//   thread_seen: (index of the thread) -> None, called on the thread.
//   hook_files: files of Python functions that hooks call; no frame of theirs, or inside theirs, is open.
//   missing, switch_on: for sys.monitoring, see hooks.h.
//   start_tick: when the frames that are open now are taken to begin.
DEVPROF_EXPORT int64_t devprof_functions_start(int64_t budget, PyObject* module_index, PyObject* thread_seen,
                                               PyObject* hook_files, PyObject* missing, PyObject* switch_on,
                                               int64_t start_tick) {
  static uint64_t generation = 0;
  if (current != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "function calls are being recorded already");
    return -1;
  }
  try {
    current = std::make_unique<devprof::Session>(++generation, budget, module_index, thread_seen, hook_files);
    devprof::set_missing(missing);
    devprof::session = current.get();
    int64_t others = 0;
    if (devprof::hook(switch_on, start_tick, &others)) return others;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  devprof::unhook();
  devprof::session = nullptr;
  current.reset();
  return -1;
}

// Ends the recording and takes the profile function out. Returns the number of threads in which another one replaced it.
DEVPROF_EXPORT int64_t devprof_functions_stop(void) {
  devprof::session = nullptr;
  return devprof::unhook();
}

DEVPROF_EXPORT void devprof_functions_drop(void) {
  devprof::session = nullptr;
  const std::unique_ptr<devprof::Session> dropped = std::move(current);  // its destructor may run Python
}

DEVPROF_EXPORT PyObject* devprof_functions_callback(const char* event) { return devprof::callback(event); }

DEVPROF_EXPORT int64_t devprof_functions_beyond(void) { return current->beyond; }

DEVPROF_EXPORT int64_t devprof_functions_lost(void) { return current->lost; }

DEVPROF_EXPORT uint64_t devprof_functions_threads(void) { return current->buffers.size(); }

DEVPROF_EXPORT uint64_t devprof_functions_native_id(uint64_t thread) { return current->buffers[thread]->native_id; }

DEVPROF_EXPORT uint64_t devprof_functions_events(uint64_t thread) { return current->buffers[thread]->size(); }

// Args: out: room for as many events as devprof_functions_events says.
DEVPROF_EXPORT void devprof_functions_copy(uint64_t thread, devprof::Event* out) { current->buffers[thread]->copy(out); }

DEVPROF_EXPORT PyObject* devprof_functions_codes(void) {
  return list_of(current->codes.codes(), [](PyObject* code) {
    Py_INCREF(code);
    return code;
  });
}

DEVPROF_EXPORT PyObject* devprof_functions_names(void) {
  return list_of(current->functions.names(), [](const std::string& name) {
    return PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace");
  });
}

// Indices of the C functions that are devprof's own.
DEVPROF_EXPORT PyObject* devprof_functions_own(void) {
  return list_of(current->functions.own(), [](uint32_t index) { return PyLong_FromUnsignedLong(index); });
}
