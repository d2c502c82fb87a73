#include "sink_log.h"

#include <stdexcept>

namespace devprof {
namespace {

// Where the logger that Kineto asks for on this thread writes to: Kineto passes it nothing but the rest of a URL.
thread_local TraceLog* t_target = nullptr;

class Logger final : public libkineto::ActivityLogger {
 public:
  explicit Logger(TraceLog& log) : log_(log) {}

  void handleDeviceInfo(const libkineto::DeviceInfo& info, int64_t) override {
    log_.devices.push_back({info.id, info.sortIndex, info.name, info.label});
  }
  void handleResourceInfo(const libkineto::ResourceInfo& info, int64_t) override {
    log_.resources.push_back({info.deviceId, info.id, info.sortIndex, info.name});
  }
  // Kineto writes it as the name of process -1, below everything else (output_json.cpp)
  void handleOverheadInfo(const OverheadInfo& info, int64_t) override {
    log_.devices.push_back({-1, 0x100000A, info.name, ""});
  }
  void handleTraceSpan(const libkineto::TraceSpan& span) override { log_.spans.push_back(span); }
  void handleActivity(const libkineto::ITraceActivity& activity) override { log_.activities.push_back(&activity); }
  void handleGenericActivity(const libkineto::GenericTraceActivity& activity) override {
    log_.activities.push_back(&activity);
  }
  void handleTraceStart(
      const std::unordered_map<std::string, std::string>& metadata, const std::string& properties) override {
    log_.metadata = metadata;
    log_.device_properties = properties;
  }
  void finalizeMemoryTrace(const std::string&, const libkineto::Config&) override {}
  void finalizeTrace(
      const libkineto::Config&,
      std::unique_ptr<libkineto::ActivityBuffers> buffers,
      int64_t end_ns DEVPROF_LOG_LINES_PARAMETER) override {
    (void)buffers.release(); // Kineto passes none; its type is not complete here
    log_.end_ns = end_ns;
    log_.lines = DEVPROF_LOG_LINES;
  }

 private:
  TraceLog& log_;
};

} // namespace

void registerSink() {
  static const bool once = [] {
    registerLoggerFactory("devprof", [](const std::string&) -> std::unique_ptr<libkineto::ActivityLogger> {
      if (t_target == nullptr) {
        throw std::invalid_argument("devprof:// is not a place to save a trace to");
      }
      return std::make_unique<Logger>(*t_target);
    });
    return true;
  }();
  (void)once;
}

TraceLog readLog(libkineto::ActivityTraceInterface& trace) {
  TraceLog log;
  struct Target {
    explicit Target(TraceLog& given) { t_target = &given; }
    ~Target() { t_target = nullptr; }
  } target(log);
  trace.save("devprof://");
  return log;
}

} // namespace devprof
