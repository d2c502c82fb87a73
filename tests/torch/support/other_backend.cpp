// Another backend beside devprof: its own profiler, registered the official way, and its own stubs. It notes what is called.
// Beside it, what drives the stubs that torch has, whosever they are.
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <torch/csrc/profiler/stubs/base.h>
#include <libkineto.h>
#include <atomic>
#include <cstring>
#include <vector>

static std::atomic<int> configured{0}, started{0}, stopped{0}, processed{0};

// One item of a record: its value is JSON, or a text that is to be quoted.
struct Item {
  const char* key;
  const char* value;
  int is_text;
};

// A record to log; its times count from the start of the window.
struct Given {
  int type;
  int id;
  int64_t start_ns, end_ns, device, resource;
  unsigned flow_id, flow_type, flow_start;
  std::string name;
  std::vector<std::tuple<std::string, std::string, bool>> items;
};
static std::vector<Given> given;

static void logGiven(libkineto::ActivityLogger& logger, int64_t window_start_ns) {
  for (const Given& one : given) {
    libkineto::GenericTraceActivity record(
        libkineto::TraceSpan(0, 0, "other"), static_cast<libkineto::ActivityType>(one.type), one.name);
    record.startTime = window_start_ns + one.start_ns;
    record.endTime = window_start_ns + one.end_ns;
    record.id = one.id;
    record.device = one.device;
    record.resource = one.resource;
    record.flow.id = one.flow_id;
    record.flow.type = one.flow_type;
    record.flow.start = one.flow_start;
    for (const auto& [key, value, is_text] : one.items) {
      is_text ? record.addMetadataQuoted(key, value) : record.addMetadata(key, value);
    }
    record.log(logger);
  }
}

struct Session final : libkineto::IActivityProfilerSession {
  void start() override { ++started; }
  void stop() override { ++stopped; }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger&) override {}
  void processTrace(
      libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback, int64_t start, int64_t) override {
    ++processed;
    if (!given.empty()) {
      logGiven(logger, start);
      return;
    }
    libkineto::GenericTraceActivity record(
        libkineto::TraceSpan(0, 0, "other"), libkineto::ActivityType::CONCURRENT_KERNEL, "another backend's");
    record.startTime = start;
    record.endTime = start + 10;
    record.id = 1;
    record.device = 40;
    record.log(logger);
  }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return nullptr; }
};

struct Profiler final : libkineto::IActivityProfiler {
  std::string name_ = "another";
  std::set<libkineto::ActivityType> types_;
  const std::string& name() const override { return name_; }
  const std::set<libkineto::ActivityType>& availableActivities() const override { return types_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<libkineto::ActivityType>&, const libkineto::Config&) override { return nullptr; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<libkineto::ActivityType>&, const libkineto::Config&) override {
    ++configured;
    return std::make_unique<Session>();
  }
};

extern "C" __attribute__((visibility("default"))) const char* devprof_build_info() { return DEVPROF_BUILD_INFO; }
extern "C" __attribute__((visibility("default"))) void other_register() {
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(
      [] { return std::make_unique<Profiler>(); });
}
extern "C" __attribute__((visibility("default"))) int other_has_factory() {
  return torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().hasFactory();
}
// Have a record logged in place of the one of its own.
extern "C" __attribute__((visibility("default"))) void other_give(
    int type, const char* name, const int64_t* times_place, int id, const unsigned* flow, const Item* items, int n) {
  Given one{type, id, times_place[0], times_place[1], times_place[2], times_place[3], flow[0], flow[1], flow[2], name, {}};
  for (int i = 0; i < n; ++i) {
    one.items.emplace_back(items[i].key, items[i].value, items[i].is_text != 0);
  }
  given.push_back(std::move(one));
}
extern "C" __attribute__((visibility("default"))) void other_counts(int* out) {
  out[0] = configured; out[1] = started; out[2] = stopped; out[3] = processed;
}

struct Stubs final : torch::profiler::impl::ProfilerStubs {
  static inline std::atomic<int> recorded{0};
  void record(c10::DeviceIndex*, torch::profiler::impl::ProfilerVoidEventStub* event, int64_t*) const override {
    ++recorded;
    *event = std::make_shared<int>(1);
  }
  float elapsed(
      const torch::profiler::impl::ProfilerVoidEventStub*,
      const torch::profiler::impl::ProfilerVoidEventStub*) const override {
    return 5.0f;
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}
};

extern "C" __attribute__((visibility("default"))) void other_register_stubs() {
  static Stubs& stubs = *new Stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
}
extern "C" __attribute__((visibility("default"))) int other_recorded() { return Stubs::recorded; }

static int drive(const torch::profiler::impl::ProfilerStubs& stubs, const char* what, const char* name, int* visited) {
  int count = 0;
  if (std::strcmp(what, "mark") == 0) {
    stubs.mark(name);
  } else if (std::strcmp(what, "range_push") == 0) {
    stubs.rangePush(name);
  } else if (std::strcmp(what, "range_pop") == 0) {
    stubs.rangePop();
  } else if (std::strcmp(what, "synchronize") == 0) {
    stubs.synchronize();
  } else if (std::strcmp(what, "enabled") == 0) {
    return stubs.enabled() ? 1 : 0;
  } else if (std::strcmp(what, "on_each_device") == 0) {
    stubs.onEachDevice([&](int device) {
      if (count < 16) {
        visited[count] = device;
      }
      ++count;
    });
  } else {
    return -1;
  }
  return count;
}

// Drive torch's registered stubs as torch's other profilers do; torch 2.13 has no Python call for it.
// `visited` takes the first 16 devices; returned is how many there were. -1: no such stub; -2: it threw.
extern "C" __attribute__((visibility("default"))) int other_drive_stubs(
    const char* what, const char* name, int* visited) {
  try {
    return drive(*torch::profiler::impl::privateuse1Stubs(), what, name, visited);
  } catch (const std::exception&) {
    return -2;
  }
}
