// One recording: tables, buffers and the limit. At most one at a time. Everything here holds the GIL.
#pragma once

#include <Python.h>
#include <time.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "buffers.h"
#include "tables.h"

namespace devprof {

struct Session {
  Session(uint64_t generation, int64_t budget, PyObject* module_index, PyObject* thread_seen, PyObject* hook_files);
  ~Session();

  const uint64_t generation;
  int64_t budget;      // calls that may still be recorded
  int64_t beyond = 0;  // calls that were left out
  int64_t lost = 0;    // events for which there was no memory
  CodeTable codes;
  CFunctionTable functions;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::unordered_map<uint64_t, Buffer*> unseen;  // by id of the thread state: open at the start, no event yet
  PyObject* const module_index;                  // (frame) -> index, or -1
  PyObject* const thread_seen;                   // (index of the buffer) -> None
  PyObject* const hook_files;                    // of functions that run inside hooks; a frozenset
};

// The session that records, or null.
extern Session* session;

inline int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);  // what time.perf_counter_ns reads on Linux; checked before it is used
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

// What the hooks report, on the thread that is traced; `session` is not null. `frame` may be null: then it is looked up.
void enter(PyObject* code, int offset, PyFrameObject* frame) noexcept;
void leave(PyObject* code) noexcept;
// Both return the function's `what`, kNone where it is not recorded.
uint32_t enter_c(PyObject* function, PyObject* argument) noexcept;
uint32_t leave_c(PyObject* function, PyObject* argument) noexcept;

// Takes the frames that are open on a thread as entered at `start_tick`. Throws std::bad_alloc.
void take_open_frames(PyThreadState* thread, int64_t start_tick);

}  // namespace devprof
