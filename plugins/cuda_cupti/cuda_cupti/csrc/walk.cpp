// Where the records of a buffer begin; `cuda_cupti/walk.py` has the same in Python. ctypes lets other threads run meanwhile.
#include <cstdint>
#include <cstring>

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

DEVPROF_EXPORT const char* devprof_build_info(void) { return DEVPROF_BUILD_INFO; }

// Step through records from *at on. Stops where `room` of them were found, before a kind whose stride is 0 or that is not in
// the table, and before a record that does not end within `size` bytes; *at is then where the next one would begin.
DEVPROF_EXPORT int64_t devprof_cupti_walk(const unsigned char* raw, int64_t size, const uint32_t* strides, int64_t n_strides,
                                          int64_t* offsets, uint32_t* kinds, int64_t room, int64_t* at) {
  int64_t n = 0;
  int64_t here = *at;
  while (n < room && size - here >= static_cast<int64_t>(sizeof(uint32_t))) {
    uint32_t kind;
    std::memcpy(&kind, raw + here, sizeof kind);
    const int64_t stride = static_cast<int64_t>(kind) < n_strides ? strides[kind] : 0;
    if (stride == 0 || stride > size - here) break;
    offsets[n] = here;
    kinds[n] = kind;
    ++n;
    here += stride;
  }
  *at = here;
  return n;
}
