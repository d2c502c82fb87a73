#include "demand.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace devprof::demand {
namespace {

std::atomic<bool> g_served{false};
std::atomic<uint64_t> g_without_data{0};
// never destroyed: Kineto's threads may outlive static destruction
auto& g_mutex = *new std::mutex;
auto& g_changed = *new std::condition_variable;
auto& g_events = *new std::deque<DevprofDemandEvent>;
bool g_woken = false; // guarded by the mutex
constexpr size_t kMostEvents = 1024; // Kineto has one request at a time; more means that nobody takes them

} // namespace

bool isServed() {
  return g_served.load();
}

void post(const DevprofDemandEvent& event) {
  {
    std::lock_guard<std::mutex> guard(g_mutex);
    if (g_events.size() < kMostEvents) {
      g_events.push_back(event);
    }
  }
  g_changed.notify_one();
}

void countWithoutData() {
  g_without_data.fetch_add(1);
}

} // namespace devprof::demand

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

// 0 also ends the wait, for the interpreter's exit.
DEVPROF_EXPORT void devprof_demand_serve(int served) {
  devprof::demand::g_served.store(served != 0);
  devprof::demand::g_changed.notify_all();
}

// 1: an event was taken; 0: none came in time; -1: nobody is to serve any more.
DEVPROF_EXPORT int devprof_demand_wait(int64_t timeout_ms, DevprofDemandEvent* out) {
  using namespace devprof::demand;
  std::unique_lock<std::mutex> lock(g_mutex);
  g_changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [] {
    return !g_events.empty() || !g_served.load() || g_woken;
  });
  g_woken = false;
  if (!g_served.load()) {
    return -1;
  }
  if (g_events.empty()) {
    return 0;
  }
  *out = g_events.front();
  g_events.pop_front();
  return 1;
}

// End a wait early.
DEVPROF_EXPORT void devprof_demand_wake() {
  {
    std::lock_guard<std::mutex> guard(devprof::demand::g_mutex);
    devprof::demand::g_woken = true;
  }
  devprof::demand::g_changed.notify_all();
}

// Captures whose records did not come in time, since the process began.
DEVPROF_EXPORT uint64_t devprof_demand_without_data() {
  return devprof::demand::g_without_data.load();
}
