#include "hooks.h"

#include <cstring>
#include <new>
#include <unordered_set>

#include "session.h"

namespace devprof {

namespace {

// Calls `visit` with every thread state of this interpreter, newest first.
template <typename Visit>
void for_each_thread(Visit visit) {
  PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; thread != nullptr; thread = PyThreadState_Next(thread)) visit(thread);
}

#if PY_VERSION_HEX >= 0x030C0000

PyObject* missing = nullptr;

int offset_of(PyObject* number) {
  const long offset = PyLong_AsLong(number);
  return static_cast<int>(offset);
}

// Arguments: code, offset, and more by event. A callback that returns None stays switched on.
PyObject* on_enter(PyObject*, PyObject* const* arguments, Py_ssize_t n) {
  if (session != nullptr && n >= 2) enter(arguments[0], offset_of(arguments[1]), nullptr);
  Py_RETURN_NONE;
}

PyObject* on_leave(PyObject*, PyObject* const* arguments, Py_ssize_t n) {
  if (session != nullptr && n >= 2) leave(arguments[0]);
  Py_RETURN_NONE;
}

// Arguments: code, offset, callable, first argument.
PyObject* on_call(PyObject*, PyObject* const* arguments, Py_ssize_t n) {
  if (session != nullptr && n >= 4) enter_c(arguments[2], arguments[3] == missing ? nullptr : arguments[3]);
  Py_RETURN_NONE;
}

PyObject* on_c_leave(PyObject*, PyObject* const* arguments, Py_ssize_t n) {
  if (session != nullptr && n >= 4) leave_c(arguments[2], arguments[3] == missing ? nullptr : arguments[3]);
  Py_RETURN_NONE;
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"PY_START", fast(on_enter), METH_FASTCALL, nullptr},  {"PY_RESUME", fast(on_enter), METH_FASTCALL, nullptr},
    {"PY_THROW", fast(on_enter), METH_FASTCALL, nullptr},  {"PY_RETURN", fast(on_leave), METH_FASTCALL, nullptr},
    {"PY_YIELD", fast(on_leave), METH_FASTCALL, nullptr},  {"PY_UNWIND", fast(on_leave), METH_FASTCALL, nullptr},
    {"CALL", fast(on_call), METH_FASTCALL, nullptr},       {"C_RETURN", fast(on_c_leave), METH_FASTCALL, nullptr},
    {"C_RAISE", fast(on_c_leave), METH_FASTCALL, nullptr},
};

#else

uint32_t start_new_thread = kNone;  // `what` of _thread.start_new_thread in this session
uint64_t newest_thread = 0;         // id of the newest thread state that has been hooked
PyObject* stand_in = nullptr;       // what sys.getprofile() says while we hold a thread
std::unordered_set<uint64_t> hooked;

int profile(PyObject*, PyFrameObject* frame, int event, PyObject* argument);

// What _PyEval_SetProfile does, on any thread and without running audit hooks there. The thread reads use_tracing before
// each instruction, under the GIL that we hold.
void set_profile(PyThreadState* thread, Py_tracefunc function, PyObject* object) {
  PyObject* const old = thread->c_profileobj;
  Py_XINCREF(object);
  thread->c_profilefunc = function;
  thread->c_profileobj = object;
  const bool traces = thread->tracing == 0 && (thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr);
  thread->cframe->use_tracing = traces ? 255 : 0;
  Py_XDECREF(old);
}

// Hooks the threads that were made since the last time: thread ids ascend, and the list begins with the newest.
void hook_new_threads() noexcept {
  const uint64_t known = newest_thread;
  for_each_thread([&](PyThreadState* thread) {
    const uint64_t id = PyThreadState_GetID(thread);
    if (id <= known) return;
    if (id > newest_thread) newest_thread = id;
    if (thread->c_profilefunc != nullptr) return;
    set_profile(thread, profile, stand_in);
    try {
      hooked.insert(id);
    } catch (const std::bad_alloc&) {  // then a replaced hook goes unnoticed
    }
  });
}

int profile(PyObject*, PyFrameObject* frame, int event, PyObject* argument) {
  if (session == nullptr) return 0;
  if (event == PyTrace_CALL || event == PyTrace_RETURN) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    if (event == PyTrace_CALL) {
      enter(reinterpret_cast<PyObject*>(code), PyFrame_GetLasti(frame), frame);
    } else {
      leave(reinterpret_cast<PyObject*>(code));
    }
    Py_DECREF(code);
  } else if (event == PyTrace_C_CALL) {
    enter_c(argument, nullptr);
  } else if (event == PyTrace_C_RETURN || event == PyTrace_C_EXCEPTION) {
    // the new thread has a state already, and cannot have run: nothing let go of the GIL since it was made
    if (leave_c(argument, nullptr) == start_new_thread && session != nullptr) hook_new_threads();
  }
  return 0;
}

// Somebody saved what sys.getprofile() said, and put it back: take the thread again, as it was.
PyObject* on_put_back(PyObject*, PyObject* const*, Py_ssize_t) {
  PyThreadState* const thread = PyThreadState_Get();
  set_profile(thread, session == nullptr ? nullptr : profile, session == nullptr ? nullptr : stand_in);
  Py_RETURN_NONE;
}

PyObject* function_of(const char* module_name, const char* name) {
  PyObject* const module = PyImport_ImportModule(module_name);
  PyObject* const function = module == nullptr ? nullptr : PyObject_GetAttrString(module, name);
  Py_XDECREF(module);
  return function;
}

PyMethodDef put_back = {"devprof_functions", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(on_put_back)),
                        METH_FASTCALL, nullptr};

#endif

}  // namespace

#if PY_VERSION_HEX >= 0x030C0000

bool hook(PyObject* switch_on, int64_t start_tick, int64_t* others) {
  *others = 0;
  PyObject* const done = PyObject_CallNoArgs(switch_on);
  if (done == nullptr) return false;
  Py_DECREF(done);
  for_each_thread([&](PyThreadState* thread) { take_open_frames(thread, start_tick); });
  return true;
}

int64_t unhook() { return 0; }

PyObject* callback(const char* event) {
  for (PyMethodDef& method : methods) {
    if (std::strcmp(method.ml_name, event) == 0) return PyCFunction_New(&method, nullptr);
  }
  PyErr_Format(PyExc_ValueError, "no callback for event %s", event);
  return nullptr;
}

void set_missing(PyObject* object) { missing = object; }

#else

bool hook(PyObject*, int64_t start_tick, int64_t* others) {
  *others = 0;
  hooked.clear();
  newest_thread = 0;
  if (stand_in == nullptr && (stand_in = callback("")) == nullptr) return false;
  PyObject* const start = function_of("_thread", "start_new_thread");
  PyObject* const set = PySys_GetObject("setprofile");
  if (start == nullptr) return false;
  start_new_thread = session->functions.find(start, nullptr);
  Py_DECREF(start);
  // a call that changes the hook is begun under one and ended under another, so it would never pair up
  if (set != nullptr && PyCFunction_Check(set)) session->functions.ignore(reinterpret_cast<PyCFunctionObject*>(set));
  const int collecting = PyGC_Disable();  // a collection here could run Python, and with it other threads
  for_each_thread([&](PyThreadState* thread) {
    if (thread->c_profilefunc != nullptr) ++*others;
  });
  hook_new_threads();
  for_each_thread([&](PyThreadState* thread) {
    if (thread->c_profilefunc == profile) take_open_frames(thread, start_tick);
  });
  if (collecting) PyGC_Enable();
  return true;
}

int64_t unhook() {
  int64_t replaced = 0;
  for_each_thread([&](PyThreadState* thread) {
    if (thread->c_profilefunc == profile) {
      set_profile(thread, nullptr, nullptr);
    } else if (hooked.count(PyThreadState_GetID(thread)) != 0) {
      ++replaced;
    }
  });
  hooked.clear();
  return replaced;
}

PyObject* callback(const char*) { return PyCFunction_New(&put_back, nullptr); }

void set_missing(PyObject*) {}

#endif

}  // namespace devprof
