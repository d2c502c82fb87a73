// A finished trace as columns: one pass over Kineto's activities, one over torch's events.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sink_items.h"
#include "sink_log.h"

namespace torch::autograd::profiler {
struct KinetoEvent;
struct ProfilerResult;
} // namespace torch::autograd::profiler

namespace devprof {

// Rows by device, resource and whether device work stands there, numbered as they come.
class RowTable {
 public:
  struct Row {
    int64_t device, resource;
    uint8_t on_device;
    int64_t torch_thread; // torch's own number of the thread, -1: not known
  };

  int32_t number(int64_t device, int64_t resource, bool on_device);
  std::vector<Row> all;

 private:
  struct Hash {
    size_t operator()(const std::pair<int64_t, int64_t>& key) const {
      return std::hash<int64_t>()(key.first * 1000003 ^ key.second);
    }
  };
  std::unordered_map<std::pair<int64_t, int64_t>, int32_t, Hash> numbers_[2];
  int32_t last_ = -1;
};

// Host ranges by their id. torch's ids lie close together, so a table does; strange ones go into a map.
class RangeIndex {
 public:
  void build(const std::vector<uint8_t>& type, const std::vector<int64_t>& id);
  int32_t find(int64_t id) const; // -1: none

 private:
  int64_t first_ = 0;
  std::vector<int32_t> near_;
  std::unordered_map<int64_t, int32_t> far_;
};

class TraceColumns {
 public:
  // Reads the whole trace. Throws what Kineto and the allocator throw.
  TraceColumns(libkineto::ActivityTraceInterface& trace, const torch::autograd::profiler::ProfilerResult& result);

  TraceLog log;
  Texts texts;
  ItemTable items{texts};
  ItemTable counters{texts};
  RowTable rows;
  std::vector<uint8_t> type, flow_type, flow_start;
  std::vector<int32_t> name, row, linked_event; // linked_event: index of the linked activity, -1: none
  std::vector<int64_t> start, end, id, linked, flow_id;

 private:
  void sortByEntering();
  void readFixed(uint32_t event, const libkineto::ITraceActivity& activity);
  void readItems(uint32_t event, const libkineto::ITraceActivity& activity);
  void link();
  void readTorchEvents(const torch::autograd::profiler::ProfilerResult& result);
  void readTorchEvent(uint32_t event, const torch::autograd::profiler::KinetoEvent& given);
  bool onDevice(const libkineto::ITraceActivity& activity) const;

  int64_t host_ = 0; // id of the host process
  RangeIndex ranges_;
};

} // namespace devprof
