#include "session.h"

#include <algorithm>
#include <chrono>

#include "demand.h"
#include "stacks.h"

namespace devprof {
namespace {

using libkineto::ActivityType;

int64_t unixNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::mutex g_captures_mutex;
auto& g_captures = *new std::unordered_map<uint64_t, std::shared_ptr<Capture>>;

// Set by Python around torch's prepare call, on the thread that calls it: Kineto configures its children on that same thread,
// so an on-demand request on Kineto's own thread never takes a capture that was meant for somebody else.
thread_local uint64_t t_armed = 0;
// Armed for a profile that devprof takes no part in, so that it is not taken for a request from outside.
constexpr uint64_t kNobody = ~uint64_t{0};

std::shared_ptr<Capture> newCapture() {
  static std::atomic<uint64_t> next{1};
  auto capture = std::make_shared<Capture>(next.fetch_add(1));
  std::lock_guard<std::mutex> guard(g_captures_mutex);
  g_captures.emplace(capture->generation, capture);
  return capture;
}

std::shared_ptr<Capture> find(uint64_t generation) {
  std::lock_guard<std::mutex> guard(g_captures_mutex);
  auto found = g_captures.find(generation);
  return found == g_captures.end() ? nullptr : found->second;
}

// Owns the blocks for as long as the trace lives: it sits in the buffer that Kineto keeps with the result, which may be freed
// on any thread, without the GIL, after the plugin is gone.
struct BlockHolder final : libkineto::GenericTraceActivity {
  std::vector<std::shared_ptr<Block>> blocks;
};

// Everything here runs under Kineto's mutex, sometimes with the GIL: no Python, no waiting, no exception may leave.
class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(std::shared_ptr<Capture> capture) : capture_(std::move(capture)) {
    status_ = libkineto::TraceStatus::WARMUP;
  }

  ~Session() override {
    stacks::end(capture_->generation);
    tell(demand::kGone);
  }

  void start() override {
    stacks::begin(capture_->generation);
    capture_->start_ns.store(unixNowNs());
    status_ = libkineto::TraceStatus::RECORDING;
    tell(demand::kStarted);
  }

  void stop() override {
    stacks::end(capture_->generation);
    status_ = libkineto::TraceStatus::PROCESSING;
    tell(demand::kStopped);
  }

  std::vector<std::string> errors() override { return {}; }

  void processTrace(libkineto::ActivityLogger&) override {} // Kineto calls the overload below

  void processTrace(
      libkineto::ActivityLogger& logger,
      libkineto::getLinkedActivityCallback lookup,
      int64_t start_ns,
      int64_t end_ns) override {
    awaitRecords();
    std::lock_guard<std::mutex> guard(capture_->mutex);
    span_start_ns_ = start_ns;
    span_end_ns_ = end_ns;
    Block::Replayed& total = capture_->replayed;
    const auto began = std::chrono::steady_clock::now();
    for (auto& block : capture_->blocks) {
      const Block::Replayed part = block->replay(logger, lookup, start_ns);
      total.emitted += part.emitted;
      total.unresolved += part.unresolved;
      total.unnamed += part.unnamed;
      total.outside += part.outside;
      capture_->outside.push_back(part.outside);
      total.calls += part.calls;
      total.moved += part.moved;
      total.strangers += part.strangers;
    }
    nameRows(logger, start_ns);
    total.spent_ns = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count());
    capture_->processed.store(true);
  }

  // The first device; the others were named in processTrace, because Kineto takes one per session. Returning one also keeps
  // Kineto from adding its default rows "GPU 0" to "GPU 15".
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    std::lock_guard<std::mutex> guard(capture_->mutex);
    if (capture_->device_rows.empty()) {
      return nullptr;
    }
    return std::make_unique<libkineto::DeviceInfo>(deviceInfo(0));
  }

  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }

  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    std::lock_guard<std::mutex> guard(capture_->mutex);
    auto buffer = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer->span = libkineto::TraceSpan(span_start_ns_, span_end_ns_, capture_->span_name);
    buffer->span.opCount = static_cast<int>(capture_->replayed.emitted);
    buffer->gpuOpCount = static_cast<int>(capture_->replayed.emitted);
    auto holder = std::make_unique<BlockHolder>();
    holder->blocks = std::move(capture_->blocks);
    buffer->activities.push_back(std::move(holder));
    return buffer;
  }

  void pushCorrelationId(uint64_t id) override { stacks::push(stacks::kOp, id); }
  void popCorrelationId() override { stacks::pop(stacks::kOp); }
  void pushUserCorrelationId(uint64_t id) override { stacks::push(stacks::kUser, id); }
  void popUserCorrelationId() override { stacks::pop(stacks::kUser); }

  std::string getDeviceProperties() override { // the first call of those that want what Python delivers
    awaitRecords();
    std::lock_guard<std::mutex> guard(capture_->mutex);
    return capture_->device_properties;
  }

  std::unordered_map<std::string, std::string> getMetadata() override {
    awaitRecords();
    std::lock_guard<std::mutex> guard(capture_->mutex);
    return capture_->metadata;
  }

 private:
  void tell(demand::Kind kind) const {
    if (capture_->on_demand) {
      demand::post({capture_->generation, 0, unixNowNs(), kind});
    }
  }

  // A profile of the program's own was drained before it let torch stop. A request from outside is drained meanwhile, on
  // Python's thread: wait for it once, for a bounded time, since Kineto's mutex is held.
  void awaitRecords() {
    std::unique_lock<std::mutex> lock(capture_->mutex);
    if (!capture_->on_demand || capture_->has_waited) {
      return;
    }
    capture_->has_waited = true;
    const auto patience = std::chrono::milliseconds(demand::isServed() ? demand::kPatienceMs : 0);
    if (capture_->delivered.wait_for(lock, patience, [this] { return capture_->ready; })) {
      return;
    }
    capture_->closed.store(true);
    capture_->blocks.clear(); // a part would look like the whole
    capture_->metadata = {{"devprof", R"({"no data": "the plugins' records did not come within 200 ms"})"}};
    demand::countWithoutData();
  }

  libkineto::DeviceInfo deviceInfo(size_t i) const {
    const auto& [id, sort] = capture_->device_rows[i];
    const auto& [name, label] = capture_->device_texts[i];
    return makeDeviceInfo(id, sort, name, label);
  }

  void nameRows(libkineto::ActivityLogger& logger, int64_t time_ns) const {
    for (size_t i = 1; i < capture_->device_rows.size(); ++i) {
      logger.handleDeviceInfo(deviceInfo(i), time_ns);
    }
    for (const auto& row : capture_->resources) {
      logger.handleResourceInfo(makeResourceInfo(row.id, row.sort, row.device, row.name), time_ns);
    }
  }

  std::shared_ptr<Capture> capture_;
  int64_t span_start_ns_ = 0;
  int64_t span_end_ns_ = 0;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }

  const std::set<ActivityType>& availableActivities() const override { return types_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config& config) override {
    return session(types, config);
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types, const libkineto::Config& config) override {
    return session(types, config);
  }

 private:
  static std::unique_ptr<libkineto::IActivityProfilerSession> session(
      const std::set<ActivityType>& types, const libkineto::Config& config) {
    return t_armed == 0 && demand::isServed() ? demandedSession(types, config) : armedSession();
  }

  // Nobody in Python prepares a profile on this thread: the request came to Kineto from outside.
  static std::unique_ptr<libkineto::IActivityProfilerSession> demandedSession(
      const std::set<ActivityType>& types, const libkineto::Config& config) {
    uint64_t mask = config.hasProfileStartIteration() ? demand::kByIteration : 0;
    for (const auto type : types) {
      mask |= static_cast<uint64_t>(type) < 63 ? uint64_t{1} << static_cast<uint64_t>(type) : 0;
    }
    const bool wants_device = types.count(ActivityType::CONCURRENT_KERNEL) != 0 ||
        types.count(ActivityType::GPU_MEMCPY) != 0 || types.count(ActivityType::GPU_MEMSET) != 0;
    if (!wants_device) {
      return nullptr;
    }
    auto capture = newCapture();
    capture->on_demand = true;
    capture->configured.store(true);
    demand::post({capture->generation, mask, unixNowNs(), demand::kConfigured});
    return std::make_unique<Session>(std::move(capture));
  }

  static std::unique_ptr<libkineto::IActivityProfilerSession> armedSession() {
    auto capture = t_armed == 0 || t_armed == kNobody ? nullptr : find(t_armed);
    if (capture == nullptr || capture->configured.exchange(true)) {
      return nullptr;
    }
    return std::make_unique<Session>(std::move(capture));
  }

  std::string name_ = "devprof";
  std::set<ActivityType> types_;
};

} // namespace

void registerProfiler() {
  static const bool once = [] {
    libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); });
    return true;
  }();
  (void)once;
}

} // namespace devprof

// The C ABI that Python calls through ctypes; devprof/torch/bridge.py documents each function.
#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

using devprof::Capture;

static std::string textOf(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

DEVPROF_EXPORT const char* devprof_build_info() {
  return DEVPROF_BUILD_INFO;
}

DEVPROF_EXPORT void devprof_register() {
  devprof::registerProfiler();
}

DEVPROF_EXPORT int64_t devprof_now_ns() {
  return devprof::unixNowNs();
}

DEVPROF_EXPORT uint64_t devprof_capture_new() {
  return devprof::newCapture()->generation;
}

DEVPROF_EXPORT void devprof_capture_drop(uint64_t generation) {
  std::shared_ptr<Capture> last; // freed outside the lock
  std::lock_guard<std::mutex> guard(devprof::g_captures_mutex);
  auto found = devprof::g_captures.find(generation);
  if (found != devprof::g_captures.end()) {
    last = std::move(found->second);
    devprof::g_captures.erase(found);
  }
}

DEVPROF_EXPORT void devprof_arm(uint64_t generation) {
  devprof::t_armed = generation;
}

// Unix ns; 0: Kineto did not start it, or the capture is gone.
DEVPROF_EXPORT int64_t devprof_capture_start_ns(uint64_t generation) {
  auto capture = devprof::find(generation);
  return capture == nullptr ? 0 : capture->start_ns.load();
}

DEVPROF_EXPORT int devprof_capture_append(uint64_t generation, const DevprofBlock* given) {
  auto capture = devprof::find(generation);
  if (capture == nullptr || given == nullptr || capture->processed.load() || capture->closed.load()) {
    return 0;
  }
  if (!devprof::Block::canBeCopied(*given)) {
    return -2;
  }
  try {
    auto block = std::make_shared<devprof::Block>(*given);
    if (!block->isWhole()) {
      return -2;
    }
    std::lock_guard<std::mutex> guard(capture->mutex);
    if (capture->closed.load()) {
      return 0;
    }
    capture->blocks.push_back(std::move(block));
    return 1;
  } catch (const std::exception&) {
    return -1; // out of memory
  }
}

DEVPROF_EXPORT void devprof_capture_span(uint64_t generation, const char* name) {
  if (auto capture = devprof::find(generation)) {
    std::lock_guard<std::mutex> guard(capture->mutex);
    capture->span_name = textOf(name);
  }
}

DEVPROF_EXPORT void devprof_capture_device(
    uint64_t generation, int64_t id, int64_t sort, const char* name, const char* label) {
  if (auto capture = devprof::find(generation)) {
    std::lock_guard<std::mutex> guard(capture->mutex);
    capture->device_rows.emplace_back(id, sort);
    capture->device_texts.emplace_back(textOf(name), textOf(label));
  }
}

DEVPROF_EXPORT void devprof_capture_resource(
    uint64_t generation, int64_t id, int64_t sort, int64_t device, const char* name) {
  if (auto capture = devprof::find(generation)) {
    std::lock_guard<std::mutex> guard(capture->mutex);
    capture->resources.push_back({id, sort, device, textOf(name)});
  }
}

DEVPROF_EXPORT void devprof_capture_metadata(uint64_t generation, const char* key, const char* json) {
  if (auto capture = devprof::find(generation)) {
    std::lock_guard<std::mutex> guard(capture->mutex);
    if (!capture->closed.load()) { // else the account that there is none stays
      capture->metadata[textOf(key)] = json == nullptr ? "null" : json;
    }
  }
}

DEVPROF_EXPORT void devprof_capture_device_properties(uint64_t generation, const char* json) {
  if (auto capture = devprof::find(generation)) {
    std::lock_guard<std::mutex> guard(capture->mutex);
    capture->device_properties = textOf(json);
  }
}

// Everything is delivered for a capture that was asked for from outside; returns 0 where that is too late.
DEVPROF_EXPORT int devprof_capture_ready(uint64_t generation) {
  auto capture = devprof::find(generation);
  if (capture == nullptr) {
    return 0;
  }
  std::lock_guard<std::mutex> guard(capture->mutex);
  capture->ready = true;
  capture->delivered.notify_all();
  return capture->closed.load() ? 0 : 1;
}

// How many rows of each block started before Kineto's own window, in the order of appending. Returns the number of blocks.
DEVPROF_EXPORT uint64_t devprof_capture_outside(uint64_t generation, uint64_t* out, uint64_t capacity) {
  auto capture = devprof::find(generation);
  if (capture == nullptr) {
    return 0;
  }
  std::lock_guard<std::mutex> guard(capture->mutex);
  const auto& counts = capture->outside;
  if (out != nullptr) {
    std::copy_n(counts.begin(), std::min<uint64_t>(counts.size(), capacity), out);
  }
  return counts.size();
}

// out: emitted, unresolved, unnamed, outside, calls, moved, strangers, ns spent. Returns 1 when Kineto has processed the capture.
DEVPROF_EXPORT int devprof_capture_replayed(uint64_t generation, uint64_t out[8]) {
  auto capture = devprof::find(generation);
  if (capture == nullptr || !capture->processed.load()) {
    return 0;
  }
  std::lock_guard<std::mutex> guard(capture->mutex);
  const auto& total = capture->replayed;
  out[0] = total.emitted;
  out[1] = total.unresolved;
  out[2] = total.unnamed;
  out[3] = total.outside;
  out[4] = total.calls;
  out[5] = total.moved;
  out[6] = total.strangers;
  out[7] = total.spent_ns;
  return 1;
}
