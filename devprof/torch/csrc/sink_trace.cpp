#include "sink_trace.h"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <algorithm>
#include <typeinfo>

namespace devprof {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;
using libkineto::ITraceActivity;
using torch::autograd::profiler::KinetoEvent;
using torch::autograd::profiler::ProfilerResult;

// Kineto's own class, and no other that is derived from it.
const GenericTraceActivity* asGeneric(const ITraceActivity& activity) {
  return typeid(activity) == typeid(GenericTraceActivity) ? static_cast<const GenericTraceActivity*>(&activity)
                                                          : nullptr;
}

bool isHostRange(uint8_t type) {
  return type == static_cast<uint8_t>(ActivityType::CPU_OP) ||
      type == static_cast<uint8_t>(ActivityType::USER_ANNOTATION);
}

} // namespace

int32_t RowTable::number(int64_t device, int64_t resource, bool on_device) {
  if (last_ >= 0) {
    const Row& row = all[last_];
    if (row.resource == resource && row.device == device && (row.on_device != 0) == on_device) {
      return last_;
    }
  }
  const auto number = static_cast<int32_t>(all.size());
  const auto [found, is_new] = numbers_[on_device].try_emplace({device, resource}, number);
  if (is_new) {
    all.push_back({device, resource, on_device, -1});
  }
  return last_ = found->second;
}

void RangeIndex::build(const std::vector<uint8_t>& type, const std::vector<int64_t>& id) {
  int64_t least = INT64_MAX, greatest = INT64_MIN;
  for (size_t event = 0; event < type.size(); ++event) {
    if (isHostRange(type[event])) {
      least = std::min(least, id[event]);
      greatest = std::max(greatest, id[event]);
    }
  }
  if (least > greatest) {
    return;
  }
  first_ = least;
  const auto room = static_cast<uint64_t>(greatest - least) + 1;
  if (room <= 8 * type.size() + 65536) {
    near_.assign(room, -1);
  }
  for (size_t event = 0; event < type.size(); ++event) {
    if (isHostRange(type[event])) {
      (near_.empty() ? far_[id[event]] : near_[id[event] - first_]) = static_cast<int32_t>(event);
    }
  }
}

int32_t RangeIndex::find(int64_t id) const {
  if (near_.empty()) {
    const auto found = far_.find(id);
    return found == far_.end() ? -1 : found->second;
  }
  return id < first_ || id - first_ >= static_cast<int64_t>(near_.size()) ? -1 : near_[id - first_];
}

TraceColumns::TraceColumns(libkineto::ActivityTraceInterface& trace, const ProfilerResult& result)
    : log(readLog(trace)), host_(getpid()) {
  for (const auto* activity : log.activities) {
    if (isHostRange(static_cast<uint8_t>(activity->type()))) { // a forked child reads what its parent recorded
      host_ = activity->deviceId();
      break;
    }
  }
  sortByEntering();
  const size_t n = log.activities.size();
  for (auto* column : {&type, &flow_type, &flow_start}) {
    column->resize(n);
  }
  for (auto* column : {&name, &row, &linked_event}) {
    column->resize(n);
  }
  for (auto* column : {&start, &end, &id, &linked, &flow_id}) {
    column->resize(n);
  }
  for (uint32_t event = 0; event < n; ++event) {
    readFixed(event, *log.activities[event]);
    readItems(event, *log.activities[event]);
  }
  ranges_.build(type, id);
  link();
  readTorchEvents(result);
}

// Puts the activities of each row in the order of entering: by start, and of equal starts the longest first. torch's own are;
// what a backend recorded on a host thread follows behind them.
void TraceColumns::sortByEntering() {
  struct Entry {
    int64_t start, end;
    const ITraceActivity* activity;
    bool before(const Entry& other) const { return start < other.start || (start == other.start && end > other.end); }
  };
  std::vector<Entry> entries;
  entries.reserve(log.activities.size());
  std::vector<Entry> last;
  RowTable seen;
  bool sorted = true;
  for (const auto* activity : log.activities) {
    const int64_t start = activity->timestamp();
    const Entry entry{start, start + activity->duration(), activity};
    entries.push_back(entry);
    const auto at = static_cast<size_t>(seen.number(activity->deviceId(), activity->resourceId(), false));
    if (at == last.size()) {
      last.push_back(entry);
    }
    sorted = sorted && !entry.before(last[at]);
    last[at] = entry;
  }
  if (sorted) {
    return;
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.before(b); });
  std::transform(
      entries.begin(), entries.end(), log.activities.begin(), [](const Entry& entry) { return entry.activity; });
}

// Whether the activity stands on a device. A process may have the number of a device, so the kind decides where it can.
bool TraceColumns::onDevice(const ITraceActivity& activity) const {
  switch (activity.type()) {
    case ActivityType::CPU_OP:
    case ActivityType::USER_ANNOTATION:
    case ActivityType::EXTERNAL_CORRELATION:
    case ActivityType::CUDA_RUNTIME:
    case ActivityType::CUDA_DRIVER:
    case ActivityType::CPU_INSTANT_EVENT:
    case ActivityType::PYTHON_FUNCTION:
    case ActivityType::OVERHEAD:
    case ActivityType::MTIA_RUNTIME:
    case ActivityType::GLOW_RUNTIME:
    case ActivityType::XPU_RUNTIME:
    case ActivityType::XPU_DRIVER:
    case ActivityType::PRIVATEUSE1_RUNTIME:
    case ActivityType::PRIVATEUSE1_DRIVER:
      return false;
    case ActivityType::GPU_USER_ANNOTATION:
    case ActivityType::GPU_MEMCPY:
    case ActivityType::GPU_MEMSET:
    case ActivityType::CONCURRENT_KERNEL:
    case ActivityType::CUDA_SYNC:
    case ActivityType::HPU_OP:
    case ActivityType::MTIA_CCP_EVENTS:
      return true;
    default:
      return activity.deviceId() != host_;
  }
}

void TraceColumns::readFixed(uint32_t event, const ITraceActivity& activity) {
  const GenericTraceActivity* generic = asGeneric(activity);
  type[event] = static_cast<uint8_t>(activity.type());
  name[event] = generic != nullptr ? texts.number(generic->activityName) : texts.number(activity.name());
  start[event] = activity.timestamp();
  end[event] = start[event] + activity.duration();
  id[event] = activity.correlationId();
  row[event] = rows.number(activity.deviceId(), activity.resourceId(), onDevice(activity));
  flow_id[event] = activity.flowId();
  flow_type[event] = static_cast<uint8_t>(activity.flowType());
  flow_start[event] = activity.flowStart();
}

void TraceColumns::readItems(uint32_t event, const ITraceActivity& activity) {
  if (const GenericTraceActivity* generic = asGeneric(activity)) {
    visitAddedMetadata(
        *generic,
        [&](const std::string& key, const std::string& value) { items.addPrinted(key, event, value); },
        [&](const std::string& key, const std::string& text) { items.addText(key, event, text); });
  } else {
    items.addMetadataJson(event, activity.metadataJson());
  }
  for (const auto& [key, value] : activity.counterValues()) {
    counters.of(key).floats.add(event, value);
  }
}

// The id of what an activity is linked to, and which event that is. Ids are told apart by 32 bits, so the pointer decides.
void TraceColumns::link() {
  std::unordered_map<const ITraceActivity*, int32_t> by_pointer;
  for (size_t event = 0; event < log.activities.size(); ++event) {
    const ITraceActivity* other = log.activities[event]->linkedActivity();
    linked[event] = other == nullptr ? 0 : other->correlationId();
    int32_t found = other == nullptr ? -1 : ranges_.find(linked[event]);
    if (other != nullptr && (found < 0 || log.activities[found] != other)) {
      if (by_pointer.empty()) {
        for (size_t i = 0; i < log.activities.size(); ++i) {
          by_pointer.emplace(log.activities[i], static_cast<int32_t>(i));
        }
      }
      const auto at = by_pointer.find(other);
      found = at == by_pointer.end() ? -1 : at->second;
    }
    linked_event[event] = found;
  }
}

// What torch knows about its ops beside the activity.
void TraceColumns::readTorchEvents(const ProfilerResult& result) {
  std::vector<const KinetoEvent*> by_event(type.size(), nullptr);
  for (const KinetoEvent& given : result.events()) {
    const uint64_t id = given.correlationId();
    const int32_t event = id == 0 ? -1 : ranges_.find(static_cast<int32_t>(id));
    if (event >= 0 && isHostRange(given.activityType())) {
      by_event[event] = &given;
    }
  }
  for (uint32_t event = 0; event < by_event.size(); ++event) {
    if (by_event[event] != nullptr) {
      readTorchEvent(event, *by_event[event]);
    }
  }
}

void TraceColumns::readTorchEvent(uint32_t event, const KinetoEvent& given) {
  constexpr uint8_t kFunction = 0, kUserScope = 7; // at::RecordScope
  const auto thread = static_cast<int64_t>(given.startThreadId()), end_thread = static_cast<int64_t>(given.endThreadId());
  rows.all[row[event]].torch_thread = thread;
  if (kActivityNamesAreCleaned) {
    name[event] = texts.number(given.name());
  }
  if (given.isAsync() || thread != end_thread) {
    items.of("End thread").ints.add(event, end_thread);
  }
  if (const uint8_t scope = given.scope(); scope != kFunction && scope != kUserScope) {
    items.of("Record scope").ints.add(event, scope);
  }
  if (const uint64_t flops = given.flops(); flops != 0) {
    items.of("Flops").ints.add(event, static_cast<int64_t>(flops));
  }
  if (const std::string overload = given.overload_name(); !overload.empty()) {
    items.addText("Overload name", event, overload);
  }
}

} // namespace devprof
