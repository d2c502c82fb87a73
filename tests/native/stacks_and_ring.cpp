// Drives the parts that run on op threads, without torch and without Python: devprof's correlation stacks, and the simulated
// device's stacks and ring.
//
//   stacks_and_ring threads SECONDS        many threads at once, for a thread sanitizer; no call may be lost or torn
//   stacks_and_ring calls SECONDS SEED     one thread, random calls of the C ABI with whatever arguments, beside a model
//
// Prints how many calls were made; a wrong answer is said on stderr and ends it with 1.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ring.h"
#include "stacks.h"

extern "C" {
void devprof_correlation_push(uint32_t kind, uint64_t id);
void devprof_correlation_pop(uint32_t kind);
uint64_t devprof_correlation_current(uint32_t kind);
uint64_t devprof_correlation_depth(uint32_t kind);
uint64_t devprof_correlation_unbalanced();
int devprof_correlation_mirror(devprof::stacks::PushFn push, devprof::stacks::PopFn pop);
void devprof_correlation_clear_mirrors();
void devprof_known_ops(const int64_t* ids, uint64_t n, uint8_t* known);
uint64_t devprof_user_parents(uint64_t* pairs, uint64_t capacity);
}

namespace {

namespace stacks = devprof::stacks;
using Clock = std::chrono::steady_clock;

#define CHECK(what)                                             \
  do {                                                          \
    if (!(what)) {                                              \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #what);   \
      std::exit(1);                                             \
    }                                                           \
  } while (false)

std::atomic<uint64_t> g_mirrored{0};
void mirroredPush(uint32_t, uint64_t) { g_mirrored.fetch_add(1, std::memory_order_relaxed); }
void mirroredPop(uint32_t) { g_mirrored.fetch_add(1, std::memory_order_relaxed); }

// --- threads -------------------------------------------------------------------------------------------------------------

// Ops of one thread: nested pushes and pops, a launch in the innermost. The session may change under it at any point.
void opThread(int number, const std::atomic<bool>& over, std::atomic<uint64_t>& calls, std::atomic<uint64_t>& pushed) {
  uint64_t id = (uint64_t(number) << 32) | 1;
  while (!over.load()) {
    for (int depth = 0; depth < 5; ++depth, ++id) {
      devprof_correlation_push(depth % 2, id);
      openreg::push_correlation(depth % 2, id);
    }
    const uint64_t op = devprof_correlation_current(0); // 0 where the session ended meanwhile
    CHECK(op == 0 || op >> 32 == uint64_t(number));
    openreg::Record record = openreg::make_record(openreg::CallKind::Launch, 0, number, openreg::unix_ns());
    CHECK(record.op_id == 0 || record.op_id >> 32 == uint64_t(number));
    record.bytes = record.op_id; // a torn record would differ
    record.event = record.op_id;
    openreg::ring().push(record);
    pushed.fetch_add(1);
    for (int depth = 5; depth-- > 0;) {
      uint64_t last = 0;
      devprof_correlation_pop(depth % 2);
      openreg::pop_correlation(depth % 2, &last);
    }
    calls.fetch_add(23);
  }
}

// What a profiler does meanwhile: sessions, mirrors, questions.
void sessionThread(const std::atomic<bool>& over, std::atomic<uint64_t>& calls) {
  std::vector<uint64_t> pairs(64);
  std::vector<int64_t> ids{1, -1, (int64_t{1} << 32) | 1, INT64_MAX, INT64_MIN};
  std::vector<uint8_t> known(ids.size());
  for (uint64_t generation = 1; !over.load(); ++generation) {
    devprof_correlation_clear_mirrors();
    devprof_correlation_mirror(mirroredPush, mirroredPop);
    openreg::enable_tracing(OR_ACTIVITY_KIND_ALL);
    stacks::begin(generation);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    devprof_known_ops(ids.data(), ids.size(), known.data());
    devprof_user_parents(pairs.data(), pairs.size() / 2);
    stacks::end(generation);
    openreg::disable_tracing(OR_ACTIVITY_KIND_ALL);
    devprof_correlation_unbalanced();
    calls.fetch_add(9);
  }
}

void drainThread(const std::atomic<bool>& over, std::atomic<uint64_t>& drained) {
  std::vector<openreg::Record> out(333);
  for (bool last = false; !last;) {
    last = over.load();
    size_t n = 0;
    while ((n = openreg::ring().drain(out.data(), out.size())) != 0) {
      for (size_t i = 0; i < n; ++i) {
        CHECK(uint64_t(out[i].bytes) == out[i].op_id && out[i].event == out[i].op_id);
      }
      drained.fetch_add(n);
    }
    openreg::ring().set_capacity(drained.load() % 2 ? 100 : 65536);
  }
}

uint64_t threads(double seconds) {
  std::atomic<bool> ops_over{false}, over{false};
  std::atomic<uint64_t> calls{0}, pushed{0}, drained{0};
  std::vector<std::thread> ops;
  for (int number = 1; number <= 8; ++number) {
    ops.emplace_back(opThread, number, std::cref(ops_over), std::ref(calls), std::ref(pushed));
  }
  std::thread session(sessionThread, std::cref(over), std::ref(calls));
  std::thread drain(drainThread, std::cref(over), std::ref(drained));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  ops_over = true;
  for (std::thread& thread : ops) {
    thread.join();
  }
  over = true;
  session.join();
  drain.join();
  CHECK(drained + openreg::ring().dropped() == pushed);
  CHECK(g_mirrored > 0);
  return calls;
}

// --- calls ---------------------------------------------------------------------------------------------------------------

// What the stacks must say, in the plainest way.
struct Model {
  uint64_t generation = 0;
  std::vector<uint64_t> ids[2];
  std::set<uint64_t> seen;
  std::vector<std::pair<uint64_t, uint64_t>> parents;
  uint64_t unbalanced = 0;
  size_t mirrors = 0;

  void begin(uint64_t number) { *this = Model{number, {}, {}, {}, 0, mirrors}; }
  void push(uint32_t kind, uint64_t id) {
    if (generation == 0) return;
    if (kind) parents.emplace_back(id, ids[1].empty() ? 0 : ids[1].back());
    else seen.insert(id);
    ids[kind].push_back(id);
  }
  void pop(uint32_t kind) {
    if (generation == 0) return;
    if (ids[kind].empty()) ++unbalanced;
    else ids[kind].pop_back();
  }
  uint64_t top(uint32_t kind) const { return generation == 0 || ids[kind].empty() ? 0 : ids[kind].back(); }
  uint64_t depth(uint32_t kind) const { return generation == 0 ? 0 : ids[kind].size(); }
};

class Calls {
 public:
  explicit Calls(uint64_t seed) : random_(seed) {}

  void one() {
    const uint32_t kind = below(8) ? below(2) : static_cast<uint32_t>(random_());
    switch (below(14)) {
      case 0: begin(); break;
      case 1: end(); break;
      case 2: mirror(); break;
      case 3: known(); break;
      case 4: parents(); break;
      case 5: device(kind); break;
      case 6: ring(); break;
      case 7: case 8: case 9: pop(kind); break;
      default: push(kind);
    }
    for (const uint32_t one : {0u, 1u, kind}) {
      CHECK(devprof_correlation_current(one) == model_.top(one & 1));
      CHECK(devprof_correlation_depth(one) == model_.depth(one & 1));
    }
    CHECK(devprof_correlation_unbalanced() == model_.unbalanced);
  }

 private:
  uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }
  uint64_t id() {
    static const uint64_t edges[] = {0, 1, 511, 512, 1023, UINT64_MAX, uint64_t(INT64_MAX), uint64_t(INT64_MAX) + 1};
    return below(4) ? below(2000) : below(2) ? edges[below(8)] : random_();
  }

  void begin() {
    if (below(20)) return; // rare, so that there is something to begin anew
    stacks::begin(++generation_);
    model_.begin(generation_);
  }
  void end() {
    if (below(30)) return;
    const uint64_t which = below(2) ? generation_ : id();
    stacks::end(which);
    if (which == model_.generation) model_.generation = 0;
    CHECK(stacks::recording() == model_.generation);
  }
  void push(uint32_t kind) {
    const uint64_t number = id();
    devprof_correlation_push(kind, number);
    model_.push(kind & 1, number);
  }
  void pop(uint32_t kind) {
    devprof_correlation_pop(kind);
    model_.pop(kind & 1);
  }
  void mirror() {
    if (below(8) == 0) {
      devprof_correlation_clear_mirrors();
      model_.mirrors = 0;
    }
    const auto push = below(4) ? mirroredPush : nullptr;
    const auto pop = below(4) ? mirroredPop : nullptr;
    const bool taken = devprof_correlation_mirror(push, pop);
    CHECK(taken == (model_.mirrors < 8 && push != nullptr && pop != nullptr));
    model_.mirrors += taken;
  }
  void known() {
    std::vector<int64_t> ids(below(50));
    for (int64_t& one : ids) one = static_cast<int64_t>(id());
    std::vector<uint8_t> known(ids.size(), 7);
    devprof_known_ops(ids.empty() ? nullptr : ids.data(), ids.size(), known.empty() ? nullptr : known.data());
    for (size_t i = 0; i < ids.size(); ++i) CHECK(known[i] == model_.seen.count(static_cast<uint64_t>(ids[i])));
  }
  void parents() {
    const uint64_t capacity = below(2) ? below(4) : model_.parents.size() + below(3);
    if (below(10) == 0) CHECK(devprof_user_parents(nullptr, id()) == model_.parents.size());
    if (below(10) == 0) devprof_known_ops(nullptr, id(), nullptr);
    std::vector<uint64_t> pairs(2 * capacity, 7); // exactly as long as is said: a write behind it is seen
    const uint64_t n = devprof_user_parents(pairs.empty() ? nullptr : pairs.data(), capacity);
    CHECK(n == model_.parents.size());
    for (uint64_t i = 0; i < std::min(n, capacity); ++i) {
      CHECK(pairs[2 * i] == model_.parents[i].first && pairs[2 * i + 1] == model_.parents[i].second);
    }
  }

  void device(uint32_t kind) {
    if (below(10) == 0) openreg::enable_tracing(static_cast<uint32_t>(random_()));
    if (below(40) == 0) openreg::disable_tracing(static_cast<uint32_t>(random_()));
    for (uint64_t times = below(700); times-- > 0;) { // more than a stack of the device holds
      if (below(3)) {
        CHECK(openreg::push_correlation(kind, id()) == (openreg::tracing_enabled() && kind < 2));
      } else {
        uint64_t last = 7;
        openreg::pop_correlation(kind, below(2) ? &last : nullptr);
      }
    }
  }
  void ring() {
    openreg::ring().set_capacity(below(3) ? below(100) : 0);
    for (uint64_t times = below(60); times-- > 0;) {
      const auto kind = below(8) ? openreg::CallKind::Launch : openreg::CallKind::EventDestroy;
      openreg::Record record = openreg::make_record(kind, int(below(4)), int(id()), openreg::unix_ns());
      record.bytes = static_cast<int64_t>(++pushed_);
      openreg::ring().push(record);
    }
    std::vector<openreg::Record> out(below(2) ? below(5) : 200);
    const size_t pending = openreg::ring().pending();
    const size_t n = openreg::ring().drain(out.empty() ? nullptr : out.data(), out.size());
    CHECK(n == std::min(pending, out.size()));
    for (size_t i = 0; i < n; ++i, ++drained_) { // in the order in which they were pushed
      CHECK(static_cast<uint64_t>(out[i].bytes) > last_);
      last_ = static_cast<uint64_t>(out[i].bytes);
    }
    CHECK(drained_ + openreg::ring().pending() + openreg::ring().dropped() == pushed_);
  }

  std::mt19937_64 random_;
  Model model_;
  uint64_t generation_ = 0, pushed_ = 0, drained_ = 0, last_ = 0;
};

uint64_t calls(double seconds, uint64_t seed) {
  Calls calls(seed);
  uint64_t n = 0;
  for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end; ++n) {
    calls.one();
  }
  return n;
}

} // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0;
  if (mode == "threads") {
    std::printf("%llu\n", static_cast<unsigned long long>(threads(seconds)));
  } else if (mode == "calls" && argc > 3) {
    std::printf("%llu\n", static_cast<unsigned long long>(calls(seconds, std::strtoull(argv[3], nullptr, 10))));
  } else {
    std::fprintf(stderr, "stacks_and_ring threads SECONDS | calls SECONDS SEED\n");
    return 2;
  }
  return 0;
}
