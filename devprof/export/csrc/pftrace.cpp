// The functions of the Perfetto writer that Python calls; ctypes lets other threads run meanwhile.
#include <cstdint>
#include <exception>

#include "perfetto.h"

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int64_t kNoMemory = -4;

template <typename Work>
int64_t guarded(Work work) {
  try {
    return work();
  } catch (const std::exception&) {  // of memory, or of a size that no vector has
    return kNoMemory;
  }
}

}  // namespace

// The sizes of the structures that this library takes, so that a caller with another layout is noticed.
DEVPROF_EXPORT int64_t devprof_perfetto_trace_bytes(void) { return static_cast<int64_t>(sizeof(devprof::PerfettoTrace)); }

DEVPROF_EXPORT int64_t devprof_perfetto_block_bytes(void) { return static_cast<int64_t>(sizeof(devprof::Block)); }

// `*writer` is to be freed by devprof_perfetto_free; null where the result is not 0.
DEVPROF_EXPORT int64_t devprof_perfetto_new(const devprof::PerfettoTrace* trace, devprof::PerfettoWriter** writer) {
  *writer = nullptr;
  return guarded([&] {
    auto* const made = new devprof::PerfettoWriter(*trace);
    const int64_t refusal = made->check();
    if (refusal == 0) {
      *writer = made;
    } else {
      delete made;
    }
    return refusal;
  });
}

// `*data` is the writer's own memory, good until it is called again; the result is its size, or a refusal.
DEVPROF_EXPORT int64_t devprof_perfetto_write(devprof::PerfettoWriter* writer, const devprof::Block* block,
                                              const uint8_t** data) {
  const int64_t refusal = guarded([&] { return writer->write(*block); });
  *data = writer->data();
  return refusal == 0 ? writer->size() : refusal;
}

DEVPROF_EXPORT int64_t devprof_perfetto_finish(devprof::PerfettoWriter* writer, const uint8_t** data) {
  const int64_t refusal = guarded([&] {
    writer->finish();
    return int64_t{0};
  });
  *data = writer->data();
  return refusal == 0 ? writer->size() : refusal;
}

DEVPROF_EXPORT void devprof_perfetto_free(devprof::PerfettoWriter* writer) { delete writer; }

DEVPROF_EXPORT int64_t devprof_rows_bytes(void) { return static_cast<int64_t>(sizeof(devprof::Slices)); }

DEVPROF_EXPORT int64_t devprof_rows_mark(const devprof::Slices* slices, uint8_t* flags) {
  return guarded([&] { return devprof::mark_rows(*slices, flags); });
}
