// The peer: a child profiler written the way Kineto's headers suggest and its own XPU plugin does. It emplaces one
// GenericTraceActivity per record into its CpuTraceBuffer, fills it with addMetadata, logs a copy of each, and hands the buffer
// over. Nothing of devprof is used here.
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "libkineto.h"
#include "output_base.h"

namespace {

using libkineto::ActivityType;

int g_armed = 0;
size_t g_records = 0;
int64_t g_build_ns = 0;
int64_t g_log_ns = 0;
std::vector<uint64_t> g_ops;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class PlainSession final : public libkineto::IActivityProfilerSession {
 public:
  void start() override { g_ops.clear(); }
  void stop() override {}
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger&) override {}

  void processTrace(
      libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback lookup, int64_t start, int64_t end) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(start, end, "plain");
    buffer_->gpuOpCount = static_cast<int>(g_records);
    const int64_t before = nowNs();
    for (size_t i = 0; i < g_records; ++i) {
      buffer_->emplace_activity(buffer_->span, ActivityType::CONCURRENT_KERNEL, names_[i % names_.size()]);
      auto& a = *buffer_->activities.back();
      a.startTime = start + 1000 + static_cast<int64_t>(i) * 10;
      a.endTime = a.startTime + 8;
      a.device = static_cast<int32_t>(i % 2);
      a.resource = static_cast<int32_t>(i % 4);
      a.id = static_cast<int32_t>((1u << 30) + i);
      a.flow.id = static_cast<uint32_t>(a.id);
      a.flow.type = libkineto::kLinkAsyncCpuGpu;
      a.flow.start = 0;
      if (!g_ops.empty()) {
        a.linked = lookup(static_cast<int32_t>(g_ops[i % g_ops.size()]));
      }
      a.addMetadata("device", a.device);
      a.addMetadata("stream", a.resource);
      a.addMetadata("correlation", a.id);
      a.addMetadata("bytes", static_cast<int64_t>(i * 64));
      a.addMetadata("registers per thread", 32);
      a.addMetadata("shared memory", 4096);
      a.addMetadata("grid", grid_);
      a.addMetadata("memory bandwidth (GB/s)", 12.5 + static_cast<double>(i % 7));
    }
    const int64_t built = nowNs();
    for (const auto& a : buffer_->activities) {
      a->log(logger);
    }
    g_log_ns = nowNs() - built;
    g_build_ns = built - before;
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }
  void pushCorrelationId(uint64_t id) override { g_ops.push_back(id); }

 private:
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
  const std::vector<std::string> names_{"gemm_f32_128x128", "elementwise_add", "reduce_sum_rows", "softmax_warp"};
  const std::string grid_ = "[16, 8, 1]";
};

class PlainProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return types_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>&, const libkineto::Config&) override {
    return make();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>&, const libkineto::Config&) override {
    return make();
  }

 private:
  static std::unique_ptr<libkineto::IActivityProfilerSession> make() {
    return g_armed != 0 ? std::make_unique<PlainSession>() : nullptr;
  }
  std::string name_ = "plain";
  std::set<ActivityType> types_;
};

} // namespace

extern "C" {
__attribute__((visibility("default"))) const char* devprof_build_info() {
  return DEVPROF_BUILD_INFO;
}
__attribute__((visibility("default"))) void plain_register() {
  libkineto::api().registerProfilerFactory([] { return std::make_unique<PlainProfiler>(); });
}
__attribute__((visibility("default"))) void plain_arm(int armed, uint64_t records) {
  g_armed = armed;
  g_records = records;
}
__attribute__((visibility("default"))) void plain_times(int64_t out[2]) {
  out[0] = g_build_ns;
  out[1] = g_log_ns;
}
}
