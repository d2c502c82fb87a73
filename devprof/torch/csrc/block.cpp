#include "block.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace devprof {
namespace {

using libkineto::ActivityType;

template <typename T>
std::vector<T> copy(const T* from, size_t n) {
  return from == nullptr ? std::vector<T>(n) : std::vector<T>(from, from + n);
}

template <typename To, typename From>
std::vector<To> narrow(const From* from, size_t n) {
  std::vector<To> to(n);
  for (size_t i = 0; from != nullptr && i < n; ++i) {
    to[i] = static_cast<To>(from[i]);
  }
  return to;
}

template <typename T>
void appendNumber(std::string& out, T value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

void appendJson(std::string& out, int64_t value) {
  appendNumber(out, value);
}
void appendJson(std::string& out, double value) {
  appendNumber(out, value);
}
void appendJson(std::string& out, bool value) {
  out += value ? "true" : "false";
}
void appendJson(std::string& out, const std::string& value) {
  out += '"';
  out += value; // cleaned by Python
  out += '"';
}
void appendJson(std::string& out, const std::vector<int64_t>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    out += i > 0 ? ", " : "";
    appendNumber(out, values[i]);
  }
  out += ']';
}

bool isDeviceWork(ActivityType type) {
  return type == ActivityType::CONCURRENT_KERNEL || type == ActivityType::GPU_MEMCPY ||
      type == ActivityType::GPU_MEMSET || type == ActivityType::CUDA_SYNC;
}

bool isHostCall(ActivityType type) {
  return type == ActivityType::PRIVATEUSE1_RUNTIME || type == ActivityType::PRIVATEUSE1_DRIVER;
}

} // namespace

Block::Block(const DevprofBlock& given)
    : rows_(given.rows),
      type_(copy(given.activity_type, rows_)),
      flow_type_(copy(given.flow_type, rows_)),
      flow_start_(copy(given.flow_start, rows_)),
      name_(copy(given.name, rows_)),
      id_(narrow<int32_t>(given.id, rows_)),
      device_(copy(given.device, rows_)),
      start_(copy(given.start_ns, rows_)),
      end_(copy(given.end_ns, rows_)),
      resource_(copy(given.resource, rows_)),
      linked_(copy(given.linked, rows_)),
      flow_id_(narrow<uint32_t>(given.flow_id, rows_)) {
  texts_.reserve(given.n_texts);
  for (uint64_t i = 0; i < given.n_texts; ++i) {
    texts_.emplace_back(given.text + given.text_offsets[i], given.text + given.text_offsets[i + 1]);
  }
  for (uint64_t i = 0; i < given.n_metadata; ++i) {
    metadata_.push_back(copyColumn(given.metadata[i], rows_));
  }
  for (uint64_t i = 0; i < given.n_counters; ++i) {
    counters_.push_back(copyColumn(given.counters[i], rows_));
  }
}

bool Block::canBeCopied(const DevprofBlock& given) {
  constexpr uint64_t most_rows = uint64_t{1} << 31; // an activity knows its row as 32 bits
  constexpr uint64_t most_columns = uint64_t{1} << 20;
  constexpr uint64_t most_values = uint64_t{1} << 40;
  const auto fits = [&](const DevprofColumn* columns, uint64_t n, bool counters) {
    return n == 0 || (n <= most_columns && columns != nullptr && std::all_of(columns, columns + n, [&](const auto& one) {
      const bool counted = one.kind == 4 ? one.width >= 0 : one.width == 1; // lists may all be empty: a width of 0
      const bool wide = counted && given.rows * static_cast<uint64_t>(one.width) <= most_values;
      return one.key != nullptr && wide && (counters ? one.kind == 1 : one.kind >= 0 && one.kind <= 4);
    }));
  };
  if (given.rows > most_rows || !fits(given.metadata, given.n_metadata, false) ||
      !fits(given.counters, given.n_counters, true)) {
    return false;
  }
  if (given.n_texts == 0) {
    return true;
  }
  const uint64_t* offsets = given.text_offsets;
  return given.n_texts <= most_rows && given.text != nullptr && offsets != nullptr && offsets[0] == 0 &&
      std::is_sorted(offsets, offsets + given.n_texts + 1);
}

bool Block::isWhole() const {
  const auto inTable = [this](int32_t index) { return index >= 0 && static_cast<size_t>(index) < texts_.size(); };
  if (!std::all_of(name_.begin(), name_.end(), [&](int32_t index) { return index == -1 || inTable(index); })) {
    return false;
  }
  return std::all_of(metadata_.begin(), metadata_.end(), [&](const Column& column) {
    return std::all_of(column.texts.begin(), column.texts.end(), inTable);
  });
}

Block::Column Block::copyColumn(const DevprofColumn& given, size_t rows) {
  Column column{given.key, given.kind, static_cast<size_t>(given.width), {}, {}, {}, {}, {}};
  switch (given.kind) {
    case 1:
      column.floats = copy(static_cast<const double*>(given.values), rows);
      break;
    case 2:
      column.bools = copy(static_cast<const uint8_t*>(given.values), rows);
      break;
    case 3:
      column.texts = copy(static_cast<const int32_t*>(given.values), rows);
      break;
    default:
      column.ints = copy(static_cast<const int64_t*>(given.values), rows * column.width);
  }
  if (given.present != nullptr) {
    column.present = copy(given.present, rows);
  }
  return column;
}

const libkineto::ITraceActivity* Block::resolve(int64_t id, const libkineto::getLinkedActivityCallback& lookup) {
  // neighbours mostly belong to the same op, and the lookup is a hash map behind a std::function
  if (id != last_id_) {
    last_id_ = id;
    last_linked_ = id == 0 ? nullptr : lookup(static_cast<int32_t>(id));
  }
  return last_linked_;
}

void Block::fillCounters() {
  if (counters_.empty()) {
    return;
  }
  counter_values_.resize(rows_);
  for (const Column& column : counters_) {
    for (size_t row = 0; row < rows_; ++row) {
      if (column.present.empty() || column.present[row]) {
        counter_values_[row].emplace_back(column.key, column.floats[row]);
      }
    }
  }
}

// torch converts its ops' ticks once per session, with an error of some hundred ns, so that a call can stick out of a short op
// that it was made in. Viewers drop slices that overlap partly; so a call is moved in, by no more than such an error.
void Block::moveIntoOp(size_t row, const libkineto::ITraceActivity& op, Replayed& result) {
  constexpr int64_t kMostNs = 2000;
  const int64_t first = op.timestamp();
  const int64_t last = first + op.duration();
  const int64_t start = std::clamp(start_[row], first, last);
  const int64_t end = std::clamp(end_[row], start, last);
  const int64_t moved = std::max(std::abs(start - start_[row]), std::abs(end - end_[row]));
  ++result.calls;
  if (moved > kMostNs) {
    result.strangers += start_[row] > last || end_[row] < first;
  } else if (moved > 0) {
    start_[row] = start;
    end_[row] = end;
    ++result.moved;
  }
}

Block::Replayed Block::replay(
    libkineto::ActivityLogger& logger,
    const libkineto::getLinkedActivityCallback& lookup,
    int64_t window_start_ns) {
  Replayed result;
  fillCounters();
  activities_.reserve(rows_); // Kineto keeps pointers into it
  for (size_t row = 0; row < rows_; ++row) {
    if (start_[row] < window_start_ns) {
      ++result.outside;
      continue;
    }
    const libkineto::ITraceActivity* linked = resolve(linked_[row], lookup);
    if (name_[row] < 0) {
      const libkineto::ITraceActivity* range = id_[row] == 0 ? nullptr : lookup(id_[row]);
      if (range == nullptr) {
        ++result.unnamed;
        continue;
      }
      name_[row] = static_cast<int32_t>(texts_.size());
      texts_.push_back(range->name());
    }
    result.unresolved += linked_[row] != 0 && linked == nullptr;
    if (linked != nullptr && isHostCall(static_cast<ActivityType>(type_[row]))) {
      moveIntoOp(row, *linked, result);
    }
    Activity& activity = activities_.emplace_back(*this, static_cast<uint32_t>(row));
    activity.linked = linked;
    logger.handleActivity(activity);
    ++result.emitted;
  }
  linked_ = {};
  return result;
}

// Calls visit(key, value) for each item of a row; the type of the value says what it is.
template <typename Visit>
void Block::visitMetadata(size_t row, Visit&& visit) const {
  const auto type = static_cast<ActivityType>(type_[row]);
  if (isDeviceWork(type)) {
    visit("device", int64_t{device_[row]});
    visit("stream", resource_[row]);
  }
  // Kineto does not print the launch number of a child profiler's records; tools join launch and work on it
  if (isDeviceWork(type) || isHostCall(type)) {
    visit("correlation", int64_t{id_[row]});
  }
  for (const Column& column : metadata_) {
    if (!column.present.empty() && !column.present[row]) {
      continue;
    }
    switch (column.kind) {
      case 1:
        visit(column.key, column.floats[row]);
        break;
      case 2:
        visit(column.key, column.bools[row] != 0);
        break;
      case 3:
        visit(column.key, texts_[column.texts[row]]);
        break;
      case 4: {
        const auto first = column.ints.begin() + row * column.width;
        visit(column.key, std::vector<int64_t>(first, first + column.width));
        break;
      }
      default:
        visit(column.key, column.ints[row]);
    }
  }
}

std::string Block::metadataJson(size_t row) const {
  std::string out;
  visitMetadata(row, [&](std::string_view key, const auto& value) {
    out += out.empty() ? "\"" : ", \"";
    out += key;
    out += "\": ";
    appendJson(out, value);
  });
  return out;
}

#if DEVPROF_TORCH_AT_LEAST(14)
void Activity::visitTypedMetadata(libkineto::ITypedMetadataVisitor& visitor) const {
  block_->visitMetadata(row_, [&](std::string_view key, const auto& value) {
    visitor.visit(libkineto::MetadataField<std::decay_t<decltype(value)>>{key}, value);
  });
}
#endif

int64_t Activity::deviceId() const {
  return block_->device_[row_];
}
int64_t Activity::resourceId() const {
  return block_->resource_[row_];
}
int32_t Activity::getThreadId() const {
  return 0; // not used for child profilers
}
int64_t Activity::timestamp() const {
  return block_->start_[row_];
}
int64_t Activity::duration() const {
  return block_->end_[row_] - block_->start_[row_];
}
int64_t Activity::correlationId() const {
  return block_->id_[row_];
}
int Activity::flowType() const {
  return block_->flow_type_[row_];
}
int64_t Activity::flowId() const {
  return block_->flow_id_[row_];
}
bool Activity::flowStart() const {
  return block_->flow_start_[row_] != 0;
}
libkineto::ActivityType Activity::type() const {
  return static_cast<ActivityType>(block_->type_[row_]);
}
const std::string Activity::name() const {
  return block_->texts_[block_->name_[row_]];
}
const std::string Activity::metadataJson() const {
  return block_->metadataJson(row_);
}
const std::vector<std::pair<std::string, double>>& Activity::counterValues() const {
  static const std::vector<std::pair<std::string, double>> none;
  return block_->counter_values_.empty() ? none : block_->counter_values_[row_];
}

} // namespace devprof
