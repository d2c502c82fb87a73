// Where the interpreter calls us: the profile function on 3.11, callbacks of sys.monitoring on 3.12 and later.
#pragma once

#include <Python.h>

#include <cstdint>

namespace devprof {

// Switches recording on for every thread of this interpreter and takes the frames that are open, without letting another
// thread run in between. `switch_on` is called on 3.12 and later. Returns false with a Python exception.
// Args: others: set to the number of threads that another profiler holds, which are left alone (3.11).
bool hook(PyObject* switch_on, int64_t start_tick, int64_t* others);

// Takes the own hooks out of every thread (3.11). Returns the number of threads in which another profiler replaced ours.
int64_t unhook();

// The callback for an event of sys.monitoring, by the event's name; new reference, null with an exception. On 3.11 the
// object that stands for us in sys.getprofile(), whatever the name.
PyObject* callback(const char* event);

// `sys.monitoring.MISSING`: stands for the first argument of a call without one. Borrowed.
void set_missing(PyObject* missing);

}  // namespace devprof
