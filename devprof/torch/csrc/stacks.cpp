#include "stacks.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "devprof/correlation.h"
#include "interrupt.h"

namespace devprof::stacks {
namespace {

// torch hands out op ids in blocks of 512 per thread: one bitmap per block is the exact set of ids seen, at an eighth of a
// byte per op. A block has one writer; relaxed atomics let the drain read it while other threads go on.
constexpr uint64_t kBlockBits = 9;
using Seen = std::array<std::atomic<uint64_t>, (1u << kBlockBits) / 64>;

std::atomic<uint64_t> g_recording{0};
std::atomic<uint64_t> g_unbalanced{0};

std::mutex g_mutex; // guards the two below; taken once per 512 ops of a thread, and once per user range
auto& g_seen = *new std::unordered_map<uint64_t, std::shared_ptr<Seen>>;
auto& g_parents = *new std::vector<std::array<uint64_t, 2>>;

constexpr size_t kMirrors = 8;
struct Mirror {
  std::atomic<PushFn> push{nullptr};
  std::atomic<PopFn> pop{nullptr};
};
Mirror g_mirrors[kMirrors];
std::atomic<size_t> g_mirror_count{0};

struct Thread {
  uint64_t generation = 0;
  std::vector<uint64_t> ids[2];
  uint64_t block = ~0ull;
  std::shared_ptr<Seen> seen;
};

Thread& current(uint64_t generation) {
  thread_local Thread thread;
  if (thread.generation != generation) {
    thread.generation = generation;
    thread.ids[kOp].clear();
    thread.ids[kUser].clear();
    thread.block = ~0ull;
    thread.seen.reset();
  }
  return thread;
}

void enterBlock(Thread& thread, uint64_t block) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto& slot = g_seen[block];
  if (!slot) {
    slot = std::make_shared<Seen>();
  }
  thread.seen = slot;
  thread.block = block;
}

void markSeen(Thread& thread, uint64_t id) {
  const uint64_t block = id >> kBlockBits;
  if (thread.block != block) {
    enterBlock(thread, block);
  }
  auto& word = (*thread.seen)[(id & ((1u << kBlockBits) - 1)) >> 6];
  word.store(word.load(std::memory_order_relaxed) | (1ull << (id & 63)), std::memory_order_relaxed);
}

} // namespace

void begin(uint64_t generation) {
  {
    std::lock_guard<std::mutex> guard(g_mutex);
    g_seen.clear();
    g_parents.clear();
  }
  g_unbalanced.store(0, std::memory_order_relaxed);
  g_recording.store(generation, std::memory_order_release);
}

void end(uint64_t generation) {
  uint64_t expected = generation;
  g_recording.compare_exchange_strong(expected, 0);
}

uint64_t recording() {
  return g_recording.load(std::memory_order_acquire);
}

void push(Kind kind, uint64_t id) {
  const uint64_t generation = recording();
  if (generation == 0) {
    return;
  }
  Thread& thread = current(generation);
  auto& ids = thread.ids[kind];
  if (kind == kUser) {
    std::lock_guard<std::mutex> guard(g_mutex);
    g_parents.push_back({id, ids.empty() ? 0 : ids.back()});
  } else {
    markSeen(thread, id);
  }
  ids.push_back(id);
  const size_t mirrors = g_mirror_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < mirrors; ++i) {
    if (PushFn mirrored = g_mirrors[i].push.load(std::memory_order_relaxed)) {
      mirrored(kind, id);
    }
  }
  if (mirrors > 0) {
    raiseNotedInterrupt();
  }
}

void pop(Kind kind) {
  const uint64_t generation = recording();
  if (generation == 0) {
    return;
  }
  auto& ids = current(generation).ids[kind];
  if (ids.empty()) {
    g_unbalanced.fetch_add(1, std::memory_order_relaxed);
  } else {
    ids.pop_back();
  }
  const size_t mirrors = g_mirror_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < mirrors; ++i) {
    if (PopFn mirrored = g_mirrors[i].pop.load(std::memory_order_relaxed)) {
      mirrored(kind);
    }
  }
  if (mirrors > 0) {
    raiseNotedInterrupt();
  }
}

uint64_t top(Kind kind) {
  const uint64_t generation = recording();
  if (generation == 0) {
    return 0;
  }
  auto& ids = current(generation).ids[kind];
  return ids.empty() ? 0 : ids.back();
}

size_t depth(Kind kind) {
  const uint64_t generation = recording();
  return generation == 0 ? 0 : current(generation).ids[kind].size();
}

uint64_t unbalancedPops() {
  return g_unbalanced.load(std::memory_order_relaxed);
}

bool mirror(PushFn push, PopFn pop) {
  const size_t slot = g_mirror_count.load();
  if (slot == kMirrors) {
    return false;
  }
  g_mirrors[slot].push.store(push, std::memory_order_relaxed);
  g_mirrors[slot].pop.store(pop, std::memory_order_relaxed);
  g_mirror_count.store(slot + 1, std::memory_order_release);
  return true;
}

void clearMirrors() {
  g_mirror_count.store(0, std::memory_order_release);
}

void knownOps(const int64_t* ids, size_t n, uint8_t* known) {
  std::lock_guard<std::mutex> guard(g_mutex);
  uint64_t block = ~0ull;
  const Seen* seen = nullptr;
  for (size_t i = 0; i < n; ++i) {
    const auto id = static_cast<uint64_t>(ids[i]);
    if (block != id >> kBlockBits) {
      block = id >> kBlockBits;
      auto found = g_seen.find(block);
      seen = found == g_seen.end() ? nullptr : found->second.get();
    }
    const uint64_t bit = id & ((1u << kBlockBits) - 1);
    known[i] = seen != nullptr && ((*seen)[bit >> 6].load(std::memory_order_relaxed) >> (bit & 63) & 1);
  }
}

size_t userParents(uint64_t* pairs, size_t capacity) {
  std::lock_guard<std::mutex> guard(g_mutex);
  for (size_t i = 0; i < g_parents.size() && i < capacity; ++i) {
    pairs[2 * i] = g_parents[i][0];
    pairs[2 * i + 1] = g_parents[i][1];
  }
  return g_parents.size();
}

namespace {
uint64_t currentOp() {
  return top(kOp);
}
uint64_t currentUser() {
  return top(kUser);
}
} // namespace
} // namespace devprof::stacks

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

using devprof::stacks::Kind;

DEVPROF_EXPORT const devprof_correlation_api* devprof_correlation_table() {
  static const devprof_correlation_api table{
      DEVPROF_CORRELATION_VERSION,
      sizeof(devprof_correlation_api),
      devprof::stacks::recording,
      devprof::stacks::currentOp,
      devprof::stacks::currentUser};
  return &table;
}

DEVPROF_EXPORT void devprof_correlation_push(uint32_t kind, uint64_t id) {
  devprof::stacks::push(static_cast<Kind>(kind & 1), id);
}

DEVPROF_EXPORT void devprof_correlation_pop(uint32_t kind) {
  devprof::stacks::pop(static_cast<Kind>(kind & 1));
}

DEVPROF_EXPORT uint64_t devprof_correlation_current(uint32_t kind) {
  return devprof::stacks::top(static_cast<Kind>(kind & 1));
}

DEVPROF_EXPORT uint64_t devprof_correlation_depth(uint32_t kind) {
  return devprof::stacks::depth(static_cast<Kind>(kind & 1));
}

DEVPROF_EXPORT uint64_t devprof_correlation_unbalanced() {
  return devprof::stacks::unbalancedPops();
}

DEVPROF_EXPORT int devprof_correlation_mirror(devprof::stacks::PushFn push, devprof::stacks::PopFn pop) {
  return push != nullptr && pop != nullptr && devprof::stacks::mirror(push, pop) ? 1 : 0;
}

DEVPROF_EXPORT void devprof_correlation_clear_mirrors() {
  devprof::stacks::clearMirrors();
}

DEVPROF_EXPORT void devprof_known_ops(const int64_t* ids, uint64_t n, uint8_t* known) {
  if (ids != nullptr && known != nullptr) {
    devprof::stacks::knownOps(ids, n, known);
  }
}

DEVPROF_EXPORT uint64_t devprof_user_parents(uint64_t* pairs, uint64_t capacity) {
  return devprof::stacks::userParents(pairs, pairs == nullptr ? 0 : capacity);
}
