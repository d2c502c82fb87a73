// A Ctrl-C that arrived inside a Python function which native code had called.
//
// ctypes prints and drops an exception that leaves such a function. So Python's handler only notes the interrupt (see
// devprof/torch/interrupts.py), and it is raised again, as a signal, once the call is over and the program's own code runs on.
#pragma once

namespace devprof {

// Called by native code after each call into Python; cheap when nothing was noted.
void raiseNotedInterrupt();

} // namespace devprof
