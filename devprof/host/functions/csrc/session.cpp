#include "session.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <new>

namespace devprof {

Session* session = nullptr;

namespace {

struct Here {
  uint64_t generation = 0;
  Buffer* buffer = nullptr;
};
thread_local Here here;

// Returns null where the session ended while Python ran, or without memory.
Buffer* first_event() noexcept {
  Session* const mine = session;
  const uint64_t generation = mine->generation;
  const uint64_t id = PyThreadState_GetID(PyThreadState_Get());
  Buffer* buffer = nullptr;
  if (const auto found = mine->unseen.find(id); found != mine->unseen.end()) {
    buffer = found->second;
    mine->unseen.erase(found);
  } else {
    try {
      mine->buffers.push_back(std::make_unique<Buffer>());
      buffer = mine->buffers.back().get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  here = {generation, buffer};
  const bool was_open = buffer->native_id != 0;
  buffer->native_id = PyThread_get_thread_native_id();
  if (was_open) return buffer;
  PyObject* const seen = mine->thread_seen;
  Py_INCREF(seen);  // the session may end in this call
  PyObject* done = PyObject_CallFunction(seen, "n", static_cast<Py_ssize_t>(mine->buffers.size() - 1));
  if (done == nullptr) PyErr_Clear();  // a thread without a name
  Py_XDECREF(done);
  Py_DECREF(seen);
  return session != nullptr && session->generation == generation ? buffer : nullptr;
}

inline Buffer* buffer_here() noexcept {
  return here.generation == session->generation ? here.buffer : first_event();
}

// Returns the index of the module, -1 for a call of something else, -2 where the session ended while Python ran.
int module_index(PyFrameObject* frame) noexcept {
  const uint64_t generation = session->generation;
  if (frame == nullptr) frame = PyEval_GetFrame();
  if (frame == nullptr) return -1;
  PyObject* const ask = session->module_index;
  Py_INCREF(ask);  // the session may end in this call
  PyObject* index = PyObject_CallOneArg(ask, reinterpret_cast<PyObject*>(frame));
  const long number = index == nullptr ? -1 : PyLong_AsLong(index);
  if (PyErr_Occurred()) PyErr_Clear();  // an object that cannot be asked is no module
  Py_XDECREF(index);
  Py_DECREF(ask);
  if (session == nullptr || session->generation != generation) return -2;
  return number < 0 ? -1 : static_cast<int>(number);
}

inline void begin(uint32_t what, int extra) noexcept {
  Buffer* const buffer = buffer_here();
  if (buffer == nullptr) return;
  if (session->budget <= 0) {
    ++session->beyond;
    ++buffer->skipped;
    return;
  }
  --session->budget;
  if (!buffer->append({now(), what, extra})) {
    ++session->lost;
    ++buffer->skipped;
  }
}

inline void end(int64_t tick, uint32_t what) noexcept {
  Buffer* const buffer = buffer_here();
  if (buffer == nullptr) return;
  if (buffer->skipped > 0) {
    --buffer->skipped;
  } else if (!buffer->append({tick, (what & ~kModule) | kLeave, 0})) {
    ++session->lost;
  }
}

}  // namespace

Session::Session(uint64_t generation, int64_t budget, PyObject* module_index, PyObject* thread_seen,
                 PyObject* hook_files)
    : generation(generation),
      budget(budget),
      module_index(module_index),
      thread_seen(thread_seen),
      hook_files(hook_files) {
  Py_INCREF(module_index);
  Py_INCREF(thread_seen);
  Py_INCREF(hook_files);
}

Session::~Session() {
  Py_DECREF(module_index);
  Py_DECREF(thread_seen);
  Py_DECREF(hook_files);
}

void enter(PyObject* code, int offset, PyFrameObject* frame) noexcept {
  uint32_t what = session->codes.find(code);
  if (what == kNone) return;
  if (what & kModule) {
    const int index = module_index(frame);
    if (index == -2) return;
    if (index < 0) what &= ~kModule;
    if (index >= 0) offset = index;
  }
  begin(what, offset);
}

void leave(PyObject* code) noexcept {
  const int64_t tick = now();
  const uint32_t what = session->codes.find(code);
  if (what != kNone) end(tick, what);
}

uint32_t enter_c(PyObject* function, PyObject* argument) noexcept {
  const uint32_t what = session->functions.find(function, argument);
  if (what != kNone) begin(what, 0);
  return what;
}

uint32_t leave_c(PyObject* function, PyObject* argument) noexcept {
  const int64_t tick = now();
  const uint32_t what = session->functions.find(function, argument);
  if (what != kNone) end(tick, what);
  return what;
}

void take_open_frames(PyThreadState* thread, int64_t start_tick) {
  std::vector<Event> open;
  for (PyFrameObject* frame = PyThreadState_GetFrame(thread); frame != nullptr;) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const uint32_t what = session->codes.find(reinterpret_cast<PyObject*>(code));
    if (PySet_Contains(session->hook_files, code->co_filename) == 1) {
      open.clear();  // an earlier recording's hook: what it called leaves unseen
    } else if (what != kNone) {
      open.push_back({start_tick, what & ~kModule, PyFrame_GetLasti(frame)});
    }
    Py_DECREF(code);
    PyFrameObject* const back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  if (open.empty()) return;  // a thread that has not begun yet: its native id is not set either
  session->buffers.push_back(std::make_unique<Buffer>());
  Buffer* const buffer = session->buffers.back().get();
  buffer->native_id = thread->native_thread_id;
  session->unseen[PyThreadState_GetID(thread)] = buffer;
  for (auto event = open.rbegin(); event != open.rend(); ++event) {
    if (!buffer->append(*event)) ++session->lost;
  }
}

}  // namespace devprof
