// What Kineto tells an output logger about a finished trace, taken by a logger of our own.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compat.h"

namespace devprof {

// The activities belong to the trace; only pointers to them are kept.
struct TraceLog {
  struct Device {
    int64_t id, sort;
    std::string name, label;
  };
  struct Resource {
    int64_t device, id, sort;
    std::string name;
  };

  std::vector<const libkineto::ITraceActivity*> activities;
  std::vector<Device> devices;
  std::vector<Resource> resources;
  std::vector<libkineto::TraceSpan> spans;
  std::unordered_map<std::string, std::string> metadata; // values are JSON text
  std::string device_properties; // JSON objects, comma-joined
  LogLines lines; // Kineto's own log, by severity
  int64_t end_ns = 0;
};

// Makes devprof:// known to Kineto. Its table of loggers has no lock: call it under the GIL, as torch's own saves run.
void registerSink();

// Has Kineto log the trace to us. Changes nothing about the trace: it can be saved before and after, as often as wanted.
TraceLog readLog(libkineto::ActivityTraceInterface& trace);

} // namespace devprof
