/* The native part of the simulated device's activity API: what must run on an op's thread, without Python.
 *
 * The functions are exported by the library that `devprof build openreg` makes; a program that has imported torch with the
 * device finds them in that library with dlopen and dlsym. Callbacks for buffers, flushing, counts of dropped records and the
 * records themselves are asked for in Python: `openreg_sim.activity`.
 */
#ifndef OPENREG_ACTIVITY_H
#define OPENREG_ACTIVITY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of records, as bits of a mask: 1 << the value of Python's `ActivityKind`. */
enum {
  OR_ACTIVITY_KIND_KERNEL = 1u << 1,
  OR_ACTIVITY_KIND_MEMCPY = 1u << 2,
  OR_ACTIVITY_KIND_MEMSET = 1u << 3,
  OR_ACTIVITY_KIND_RUNTIME = 1u << 4,
  OR_ACTIVITY_KIND_EXTERNAL_CORRELATION = 1u << 5,
  OR_ACTIVITY_KIND_SYNCHRONIZATION = 1u << 6,
  OR_ACTIVITY_KIND_MEMORY = 1u << 7,
  OR_ACTIVITY_KIND_ALL = 0xfeu
};

/* Whose ids a stack holds: the values of Python's `ExternalCorrelationKind`. */
enum { OR_EXTERNAL_CORRELATION_OPERATOR = 0, OR_EXTERNAL_CORRELATION_USER = 1 };

/* Enable kinds beside those that are enabled. While any kind is, every thread's ids are kept and each launch takes the innermost
 * along. Where none was, an epoch starts: all threads' stacks are empty, and so is the count of pops that found nothing.
 * Bits of no kind are ignored.
 *
 * This mask decides on nothing but the ids: whether a call leaves a record is decided in Python, which sets all of the mask
 * when it enables its first kind and clears all of it when it disables its last. One thread at a time may enable or disable;
 * others may push, pop and launch meanwhile. */
void orActivityEnableTracing(uint32_t kinds);

/* Disable kinds. While none is left, pushes and pops do nothing and launches carry no ids. */
void orActivityDisableTracing(uint32_t kinds);

/* Put an id, up to 2^63 - 1, on the calling thread's stack of that kind. Any thread; never blocks, never calls Python.
 * Returns 0, or 1 where tracing is disabled or the kind is unknown. */
int orActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);

/* Take the innermost id off the calling thread's stack of that kind; `last`, which may be null, receives it, or 0. Any thread;
 * never blocks, never calls Python. Returns 0, or 1 where the stack is empty, tracing is disabled or the kind is unknown. */
int orActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last);

#ifdef __cplusplus
}
#endif

#endif
