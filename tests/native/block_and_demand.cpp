// The bridge's blocks of records under an address sanitizer, beside the arrays that they were made of; and the requests from
// outside under a thread sanitizer. Kineto's headers, and nothing of its library.
//
//   block_and_demand blocks SECONDS SEED     random blocks, whole and not: prints how many
//   block_and_demand demand SECONDS          one thread waits, others post, wake and end: prints how many events arrived
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "block.h"
#include "demand.h"

extern "C" void devprof_demand_serve(int served);
extern "C" int devprof_demand_wait(int64_t timeout_ms, DevprofDemandEvent* out);
extern "C" void devprof_demand_wake();

namespace {

using Clock = std::chrono::steady_clock;
std::mt19937_64 g_random;

void check(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::exit(1);
  }
}

uint64_t below(uint64_t n) {
  return n == 0 ? 0 : g_random() % n;
}

// Arrays of exactly the promised length, so that one step too far is seen.
template <typename T>
std::vector<T> filled(size_t n, uint64_t limit) {
  std::vector<T> made(n);
  for (auto& one : made) {
    one = static_cast<T>(limit == 0 ? g_random() : below(limit));
  }
  made.shrink_to_fit();
  return made;
}

template <typename T>
const T* mostly(const std::vector<T>& given) { // an absent column is a null pointer
  return below(5) == 0 ? nullptr : given.data();
}

struct Columns {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<uint8_t> bytes, present;
  std::vector<int32_t> texts;
  std::string key;
  DevprofColumn column{};

  Columns(size_t rows, int32_t kind, size_t n_texts, bool whole) {
    key.assign(below(40), 'k');
    const int32_t width = kind == 4 ? static_cast<int32_t>(below(4)) : 1;
    ints = filled<int64_t>(rows * width, 0);
    floats = filled<double>(rows, 1000);
    bytes = filled<uint8_t>(rows, 3);
    present = filled<uint8_t>(rows, 2);
    texts = filled<int32_t>(rows, whole ? n_texts : 2 * n_texts + 1);
    const void* values[] = {ints.data(), floats.data(), bytes.data(), texts.data(), ints.data()};
    // texts that are not there are the first one, so there must be one
    const bool absent = below(5) == 0 && (kind != 3 || n_texts > 0);
    column = {key.c_str(), kind, width, absent ? nullptr : values[kind], mostly(present)};
  }
};

struct Given {
  size_t rows = below(50);
  size_t n_texts = below(6);
  bool whole = below(3) != 0 && n_texts > 0;
  std::vector<uint8_t> type = filled<uint8_t>(rows, 40), flow_type = filled<uint8_t>(rows, 0), flow = filled<uint8_t>(rows, 2);
  std::vector<int32_t> name = filled<int32_t>(rows, whole ? n_texts : 2 * n_texts + 1), device = filled<int32_t>(rows, 0);
  std::vector<int64_t> start = filled<int64_t>(rows, 1 << 20), end = filled<int64_t>(rows, 1 << 20);
  std::vector<int64_t> id = filled<int64_t>(rows, 8), resource = filled<int64_t>(rows, 0), linked = filled<int64_t>(rows, 8);
  std::vector<int64_t> flow_id = filled<int64_t>(rows, 0);
  std::string text;
  std::vector<uint64_t> offsets{0};
  std::vector<std::unique_ptr<Columns>> made;
  std::vector<DevprofColumn> metadata, counters;

  Given() {
    for (auto& one : name) {
      one = below(4) == 0 ? -1 : one;
    }
    for (size_t i = 0; i < n_texts; ++i) {
      text.append(below(70), static_cast<char>('a' + i));
      offsets.push_back(text.size());
    }
    for (uint64_t i = below(6); i > 0 && (whole || n_texts > 0); --i) {
      made.push_back(std::make_unique<Columns>(rows, static_cast<int32_t>(below(5)), n_texts, whole));
      metadata.push_back(made.back()->column);
    }
    for (uint64_t i = below(3); i > 0; --i) {
      made.push_back(std::make_unique<Columns>(rows, 1, n_texts, true));
      counters.push_back(made.back()->column);
    }
  }

  DevprofBlock block() const {
    const DevprofBlock made{
        rows, mostly(type), name.data(), start.data(), end.data(), id.data(), mostly(device), mostly(resource),
        mostly(linked), mostly(flow_id), mostly(flow_type), mostly(flow), text.data(), offsets.data(), n_texts,
        metadata.data(), metadata.size(), counters.data(), counters.size()};
    return made;
  }
};

struct Range final : libkineto::ITraceActivity {
  int64_t deviceId() const override { return 0; }
  int64_t resourceId() const override { return 0; }
  int32_t getThreadId() const override { return 0; }
  int64_t timestamp() const override { return 1000; }
  int64_t duration() const override { return 500000; }
  int64_t correlationId() const override { return 3; }
  int flowType() const override { return 0; }
  int64_t flowId() const override { return 0; }
  bool flowStart() const override { return false; }
  libkineto::ActivityType type() const override { return libkineto::ActivityType::CPU_OP; }
  const std::string name() const override { return "a range whose name is longer than what a text holds in itself"; }
  const libkineto::ITraceActivity* linkedActivity() const override { return nullptr; }
  const libkineto::TraceSpan* traceSpan() const override { return nullptr; }
  void log(libkineto::ActivityLogger&) const override {}
  const std::string metadataJson() const override { return ""; }
};

struct Reader final : libkineto::ActivityLogger {
  std::vector<const libkineto::ITraceActivity*> seen; // Kineto keeps pointers, too

  void handleActivity(const libkineto::ITraceActivity& one) override { seen.push_back(&one); }
  void handleDeviceInfo(const libkineto::DeviceInfo&, int64_t) override {}
  void handleResourceInfo(const libkineto::ResourceInfo&, int64_t) override {}
  void handleOverheadInfo(const OverheadInfo&, int64_t) override {}
  void handleTraceSpan(const libkineto::TraceSpan&) override {}
  void handleGenericActivity(const libkineto::GenericTraceActivity&) override {}
  void handleTraceStart(const std::unordered_map<std::string, std::string>&, const std::string&) override {}
  void finalizeMemoryTrace(const std::string&, const libkineto::Config&) override {}
  void finalizeTrace(
      const libkineto::Config&,
      std::unique_ptr<libkineto::ActivityBuffers>,
      int64_t DEVPROF_LOG_LINES_PARAMETER) override {
    (void)sizeof(DEVPROF_LOG_LINES);
  }
};

uint64_t readAll(const Reader& reader, const Given& given) {
  uint64_t length = 0;
  for (const auto* one : reader.seen) {
    length += one->name().size() + one->metadataJson().size() + one->counterValues().size();
    check(static_cast<int64_t>(static_cast<uint64_t>(one->timestamp())) == one->timestamp(), "a time can be read");
    check(one->deviceId() == 0 || std::find(given.device.begin(), given.device.end(), one->deviceId()) != given.device.end(),
          "a device is one that was given");
    length += one->resourceId() + one->flowId() + one->flowStart() + one->flowType() + one->correlationId() != 0;
    length += one->duration() != 0 && one->linkedActivity() != nullptr && one->type() == libkineto::ActivityType::CPU_OP;
  }
  return length;
}

uint64_t oneBlock() {
  const Given given;
  const DevprofBlock raw = given.block();
  check(devprof::Block::canBeCopied(raw), "what is whole can be copied");
  devprof::Block block(raw);
  const bool whole = block.isWhole();
  check(whole || !given.whole, "what was made whole is whole");
  if (!whole) {
    return 0;
  }
  const Range range;
  Reader reader;
  const auto result = block.replay(
      reader, [&](int32_t id) { return id % 2 == 1 ? &range : nullptr; }, static_cast<int64_t>(below(1 << 18)));
  check(result.emitted == reader.seen.size(), "what was emitted was seen");
  check(result.emitted + result.unnamed + result.outside == given.rows, "each row is accounted for");
  return readAll(reader, given);
}

// What cannot be copied is refused, and nothing of it is read.
void oneThatIsRefused() {
  DevprofBlock raw{};
  raw.rows = below(3);
  static const DevprofColumn no_key{nullptr, 0, 1, nullptr, nullptr};
  const uint64_t falling[] = {0, 3, 2};
  switch (below(6)) {
    case 0:
      raw.rows = (uint64_t{1} << 31) + 1 + below(uint64_t{1} << 62);
      break;
    case 1:
      raw.n_texts = 1 + below(uint64_t{1} << 62);
      break;
    case 2:
      raw.text = "abc";
      raw.text_offsets = falling;
      raw.n_texts = 2;
      break;
    case 3:
      raw.n_metadata = 1 + below(uint64_t{1} << 62);
      break;
    case 4:
      raw.metadata = &no_key;
      raw.n_metadata = 1;
      break;
    default:
      raw.n_counters = 1 + below(uint64_t{1} << 62);
  }
  check(!devprof::Block::canBeCopied(raw), "what cannot be copied is refused");
}

int blocks(double seconds, uint64_t seed) {
  g_random.seed(seed);
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  uint64_t count = 0, length = 0;
  while (Clock::now() < until) {
    length += oneBlock();
    oneThatIsRefused();
    ++count;
  }
  check(length > 0, "something was read");
  std::printf("%llu\n", static_cast<unsigned long long>(count));
  return 0;
}

int demand(double seconds) {
  devprof_demand_serve(1);
  std::atomic<bool> over{false};
  std::atomic<uint64_t> posted{0}, taken{0};
  std::vector<std::thread> threads;
  for (uint64_t who = 0; who < 4; ++who) {
    threads.emplace_back([&, who] {
      while (!over.load()) {
        devprof::demand::post({who, posted.fetch_add(1), 1, devprof::demand::kStarted});
        devprof::demand::countWithoutData();
        devprof_demand_wake();
        std::this_thread::yield();
      }
    });
  }
  std::thread waiting([&] {
    DevprofDemandEvent event{};
    for (int answer = 0; answer >= 0;) {
      answer = devprof_demand_wait(5, &event);
      if (answer == 1) {
        check(event.generation < 4 && event.kind == devprof::demand::kStarted, "an event is whole");
        taken.fetch_add(1);
      }
    }
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  over.store(true);
  for (auto& thread : threads) {
    thread.join();
  }
  devprof_demand_serve(0);
  waiting.join();
  check(taken.load() <= posted.load(), "no event is taken twice");
  std::printf("%llu\n", static_cast<unsigned long long>(taken.load()));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "blocks") == 0) {
    return blocks(std::atof(argv[2]), std::strtoull(argv[3], nullptr, 10));
  }
  return argc == 3 && std::strcmp(argv[1], "demand") == 0 ? demand(std::atof(argv[2])) : 2;
}
