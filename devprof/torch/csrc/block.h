// A block of records: one copy of Python's columns, and the Kineto activities that read from it.
//
// An activity is a row number and a pointer; every getter reads a column. Metadata text is made only when a writer asks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compat.h"

// Plain structs shared with Python (devprof/torch/native_types.py mirrors them field by field).
extern "C" {
struct DevprofColumn {
  const char* key; // ASCII, already clean
  int32_t kind; // MetadataKind: 0 int64, 1 float64, 2 uint8 bool, 3 int32 text index, 4 int64[width]
  int32_t width; // items per row for kind 4, else 1
  const void* values;
  const uint8_t* present; // one byte per row, or null: all present
};

struct DevprofBlock {
  uint64_t rows;
  const uint8_t* activity_type;
  const int32_t* name; // index into the texts; -1: take the name of the host activity with this row's id
  const int64_t* start_ns;
  const int64_t* end_ns;
  const int64_t* id; // as Kineto prints and torch matches it: truncated to int32
  const int32_t* device;
  const int64_t* resource;
  const int64_t* linked; // op id, 0: not linked
  const int64_t* flow_id; // 0: no flow
  const uint8_t* flow_type;
  const uint8_t* flow_start;
  const char* text; // all texts, one after another
  const uint64_t* text_offsets; // n_texts + 1 offsets into text
  uint64_t n_texts;
  const DevprofColumn* metadata;
  uint64_t n_metadata;
  const DevprofColumn* counters;
  uint64_t n_counters;
};
}

namespace devprof {

class Block;

struct Activity final : libkineto::ITraceActivity {
  Activity(const Block& block, uint32_t row) : block_(&block), row_(row) {}

  int64_t deviceId() const override;
  int64_t resourceId() const override;
  int32_t getThreadId() const override;
  int64_t timestamp() const override;
  int64_t duration() const override;
  int64_t correlationId() const override;
  int flowType() const override;
  int64_t flowId() const override;
  bool flowStart() const override;
  libkineto::ActivityType type() const override;
  const std::string name() const override;
  const libkineto::ITraceActivity* linkedActivity() const override { return linked; }
  const libkineto::TraceSpan* traceSpan() const override { return nullptr; }
  void log(libkineto::ActivityLogger& logger) const override { logger.handleActivity(*this); }
  const std::string metadataJson() const override;
#if DEVPROF_TORCH_AT_LEAST(14)
  void visitTypedMetadata(libkineto::ITypedMetadataVisitor& visitor) const override;
#endif
  const std::vector<std::pair<std::string, double>>& counterValues() const override;

  const libkineto::ITraceActivity* linked = nullptr;

 private:
  const Block* block_;
  uint32_t row_;
};

class Block {
 public:
  explicit Block(const DevprofBlock& given);
  // False where an index points outside the texts: the owner of the columns changed them after they had been checked.
  bool isWhole() const;

  // Whether what was given can be copied at all: pointers that are there, lengths that can be.
  static bool canBeCopied(const DevprofBlock& given);

  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // What became of the rows when Kineto asked for them.
  struct Replayed {
    uint64_t emitted = 0;
    uint64_t unresolved = 0; // an op id that the trace does not hold
    uint64_t unnamed = 0; // an annotation whose range the trace does not hold: left out
    uint64_t outside = 0; // started before Kineto's own window: left out
    uint64_t calls = 0; // host calls that are linked to an op
    uint64_t moved = 0; // of those, moved into it
    uint64_t strangers = 0; // of those, made when it was not running
    uint64_t spent_ns = 0;
  };

  // Resolve links against the trace and hand every row to Kineto. Called once, inside processTrace.
  Replayed replay(
      libkineto::ActivityLogger& logger,
      const libkineto::getLinkedActivityCallback& lookup,
      int64_t window_start_ns);

 private:
  friend struct Activity;

  struct Column {
    std::string key;
    int32_t kind;
    size_t width;
    std::vector<int64_t> ints; // kinds 0 and 4
    std::vector<double> floats; // kind 1
    std::vector<int32_t> texts; // kind 3
    std::vector<uint8_t> bools; // kind 2
    std::vector<uint8_t> present; // empty: all
  };

  static Column copyColumn(const DevprofColumn& given, size_t rows);
  template <typename Visit>
  void visitMetadata(size_t row, Visit&& visit) const;
  std::string metadataJson(size_t row) const;
  void fillCounters();
  void moveIntoOp(size_t row, const libkineto::ITraceActivity& op, Replayed& result);
  const libkineto::ITraceActivity* resolve(int64_t id, const libkineto::getLinkedActivityCallback& lookup);

  size_t rows_;
  std::vector<uint8_t> type_, flow_type_, flow_start_;
  std::vector<int32_t> name_, id_, device_;
  std::vector<int64_t> start_, end_, resource_, linked_;
  std::vector<uint32_t> flow_id_;
  std::vector<std::string> texts_;
  std::vector<Column> metadata_, counters_;
  std::vector<std::vector<std::pair<std::string, double>>> counter_values_;
  std::vector<Activity> activities_;
  int64_t last_id_ = 0;
  const libkineto::ITraceActivity* last_linked_ = nullptr;
};

} // namespace devprof
