// A Ctrl-C that arrived inside a Python function which native code had called.
//
// ctypes prints and drops an exception that leaves such a function. So Python's handler only notes the interrupt (see
// devprof/torch/interrupts.py), and it is raised again, as a signal, once the call is over and the program's own code runs on.
//
// Beside it stands what else native code may ask of the main thread without having the GIL.
#pragma once

namespace devprof {

// Called by native code after each call into Python; cheap when nothing was noted.
void raiseNotedInterrupt();

// Have the main thread call a function soon, between two of its instructions and with the GIL. Callable under any lock, on any
// thread, while the interpreter lives. It is best effort: Python keeps a few dozen of such calls, and drops the others.
void onMainThread(int (*call)(void*));

} // namespace devprof
