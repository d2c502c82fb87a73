// The functions that Python calls; ctypes lets other threads run meanwhile.
#include <cstdint>

#include "chunk.h"
#include "numbers.h"

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

DEVPROF_EXPORT const char* devprof_build_info(void) { return DEVPROF_BUILD_INFO; }

// The size of the chunk that this library takes, so that a caller with another layout is noticed.
DEVPROF_EXPORT int64_t devprof_json_chunk_bytes(void) { return static_cast<int64_t>(sizeof(devprof::Chunk)); }

DEVPROF_EXPORT int64_t devprof_json_field_bytes(void) { return static_cast<int64_t>(sizeof(devprof::Field)); }

DEVPROF_EXPORT int64_t devprof_json_encode(const devprof::Chunk* chunk, int64_t first, char* out, int64_t capacity,
                                           int64_t* written) {
  return devprof::encode(*chunk, first, out, capacity, written);
}
