/* devprof's correlation stacks, for a vendor's runtime written in C or C++.
 *
 * In a torch session devprof keeps, per thread, a stack of op ids and a stack of user-range ids. A runtime that launches work
 * reads the innermost ids at the launch and stores them with its record. The table of functions is handed over by Python: its
 * address is `SessionConfig.correlation_api` in the plugin's `configure`.
 *
 * All functions may be called from any thread, with or without the GIL, never block and never fail. The table stays valid
 * until the process ends.
 */
#ifndef DEVPROF_CORRELATION_H
#define DEVPROF_CORRELATION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEVPROF_CORRELATION_VERSION 1

typedef struct devprof_correlation_api {
  uint32_t version; /* DEVPROF_CORRELATION_VERSION of the provider; fields are only ever added at the end */
  uint32_t size;    /* sizeof the provider's struct */
  /* Number of the session that is recording, 0 when none is. Ids of one session mean nothing in another. */
  uint64_t (*session)(void);
  /* Id of the innermost op on the calling thread, 0 when there is none. */
  uint64_t (*current_op)(void);
  /* Id of the innermost user range on the calling thread, 0 when there is none. */
  uint64_t (*current_user)(void);
} devprof_correlation_api;

#ifdef __cplusplus
}
#endif

#endif
