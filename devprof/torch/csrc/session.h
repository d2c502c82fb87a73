// One capture, as Kineto sees it: a child profiler's session that replays what Python delivered before it was stopped.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "block.h"

namespace devprof {

// What Python and Kineto share about one capture. Python fills it before it lets torch stop; Kineto reads it while stopping.
struct Capture {
  explicit Capture(uint64_t number) : generation(number) {}

  const uint64_t generation;
  std::atomic<bool> configured{false};
  std::atomic<int64_t> start_ns{0}; // when Kineto started the session
  std::atomic<bool> processed{false};
  std::atomic<bool> closed{false}; // Kineto has waited long enough: what comes now comes too late
  bool on_demand = false; // asked for from outside: Kineto's thread waits for the records

  std::mutex mutex; // guards what follows
  std::string span_name = "devprof";
  std::vector<std::shared_ptr<Block>> blocks;
  std::vector<std::pair<int64_t, int64_t>> device_rows; // (id, sort index)
  std::vector<std::pair<std::string, std::string>> device_texts; // (name, label)
  struct Resource {
    int64_t id, sort, device;
    std::string name;
  };
  std::vector<Resource> resources;
  std::unordered_map<std::string, std::string> metadata; // values are JSON text
  std::string device_properties;
  Block::Replayed replayed;
  std::vector<uint64_t> outside; // of it, by block
  bool ready = false; // Python has delivered everything
  bool has_waited = false;
  std::condition_variable delivered;
};

// Registers the one child profiler with Kineto. Later calls do nothing.
void registerProfiler();

} // namespace devprof
