#include "sink.h"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/profiler/kineto_shim.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <typeinfo>

#include "sink_trace.h"

namespace devprof {
namespace {

using torch::autograd::profiler::ProfilerResult;
using torch::profiler::impl::kineto::ActivityTraceWrapper;

// torch hands Kineto's trace to nobody, and lets it be saved once. Kineto itself saves as often as it is asked to; so the trace
// is taken out of the result. An explicit instantiation may name a private member.
using TraceMember = std::unique_ptr<ActivityTraceWrapper> ProfilerResult::*;
struct TraceTag {
  friend TraceMember memberOf(TraceTag);
};
template <TraceMember member>
struct Named {
  friend TraceMember memberOf(TraceTag) { return member; }
};
template struct Named<&ProfilerResult::trace_>;

libkineto::ActivityTraceInterface* traceOf(const ProfilerResult& result) {
  const auto& wrapper = result.*memberOf(TraceTag{});
  return wrapper == nullptr ? nullptr : wrapper->get().get();
}

// What Python reads: the columns, and tables of pointers into them.
struct Reader {
  Reader(libkineto::ActivityTraceInterface& trace, const ProfilerResult& result) : columns(trace, result) {
    fillTexts();
    fillFixed();
    fillItems(columns.items, items, view.items, view.n_items);
    fillItems(columns.counters, counters, view.counters, view.n_counters);
    fillTables();
    view.window_start_ns = static_cast<int64_t>(result.trace_start_ns());
    view.window_end_ns = columns.log.end_ns;
  }

  DevprofSinkColumns view{};

 private:
  void fillTexts() {
    offsets.push_back(0);
    for (const std::string& one : columns.texts.all()) {
      text += one;
      offsets.push_back(text.size());
    }
    view.text = text.data();
    view.text_offsets = offsets.data();
    view.n_texts = offsets.size() - 1;
  }

  void fillFixed() {
    view.n = columns.type.size();
    view.type = columns.type.data();
    view.flow_type = columns.flow_type.data();
    view.flow_start = columns.flow_start.data();
    view.name = columns.name.data();
    view.row = columns.row.data();
    view.linked_event = columns.linked_event.data();
    view.start = columns.start.data();
    view.end = columns.end.data();
    view.id = columns.id.data();
    view.linked = columns.linked.data();
    view.flow_id = columns.flow_id.data();
  }

  static void fillItems(
      const ItemTable& table, std::vector<DevprofSinkItems>& out, const DevprofSinkItems*& first, uint64_t& n) {
    for (const Items& one : table.all()) {
      DevprofSinkItems given{one.key.data(), one.key.size(), one.nulls, {}, {}, {}};
      const auto put = [&given](int kind, const auto& values) {
        given.counts[kind] = values.events.size();
        given.events[kind] = values.events.data();
        given.values[kind] = values.values.data();
      };
      put(0, one.ints);
      put(1, one.floats);
      put(2, one.bools);
      put(3, one.texts);
      put(4, one.json);
      out.push_back(given);
    }
    first = out.data();
    n = out.size();
  }

  void fillTables() {
    const TraceLog& log = columns.log;
    for (const auto& row : columns.rows.all) {
      rows.push_back({row.device, row.resource, row.on_device, row.torch_thread});
    }
    for (const auto& one : log.devices) {
      devices.push_back({one.id, one.sort, one.name.c_str(), one.label.c_str()});
    }
    for (const auto& one : log.resources) {
      resources.push_back({one.device, one.id, one.sort, one.name.c_str()});
    }
    for (const auto& one : log.spans) {
      spans.push_back({one.startTime, one.endTime, one.opCount, one.iteration, one.name.c_str(), one.prefix.c_str()});
    }
    for (const auto& [key, value] : log.metadata) {
      facts.push_back({key.c_str(), value.c_str()});
    }
    for (const auto& [severity, texts] : log.lines) {
      for (const auto& one : texts) {
        lines.push_back({severity.c_str(), one.c_str()});
      }
    }
    const auto point = [](const auto& table, auto& first, uint64_t& n) {
      first = table.data();
      n = table.size();
    };
    point(rows, view.rows, view.n_rows);
    point(devices, view.devices, view.n_devices);
    point(resources, view.resources, view.n_resources);
    point(spans, view.spans, view.n_spans);
    point(facts, view.facts, view.n_facts);
    point(lines, view.lines, view.n_lines);
    view.device_properties = log.device_properties.c_str();
  }

  TraceColumns columns;
  std::string text;
  std::vector<uint64_t> offsets;
  std::vector<DevprofSinkItems> items, counters;
  std::vector<DevprofSinkRow> rows;
  std::vector<DevprofSinkDevice> devices;
  std::vector<DevprofSinkResource> resources;
  std::vector<DevprofSinkSpan> spans;
  std::vector<DevprofSinkFact> facts, lines;
};

constexpr int kDone = 1, kNoTrace = 0, kFailed = -1;

template <typename Work>
int guarded(const ProfilerResult* result, char* error, uint64_t error_size, Work&& work) {
  try {
    auto* trace = traceOf(*result);
    if (trace == nullptr) {
      return kNoTrace;
    }
    work(*trace);
    return kDone;
  } catch (const std::exception& failure) {
    std::snprintf(error, error_size, "%s", failure.what());
  } catch (...) {
    std::snprintf(error, error_size, "an exception of an unknown type");
  }
  return kFailed;
}

} // namespace
} // namespace devprof

#define DEVPROF_EXPORT extern "C" __attribute__((visibility("default")))

using torch::autograd::profiler::ProfilerResult;

DEVPROF_EXPORT const char* devprof_build_info() {
  return DEVPROF_BUILD_INFO;
}

DEVPROF_EXPORT void devprof_sink_register() {
  devprof::registerSink();
}

// What pybind11's conduit asks for, to give out a pointer to the C++ object behind a Python one.
DEVPROF_EXPORT const void* devprof_sink_type() {
  return &typeid(ProfilerResult);
}

DEVPROF_EXPORT const char* devprof_sink_type_name() {
  return typeid(ProfilerResult).name();
}

DEVPROF_EXPORT const char* devprof_sink_type_info_name() {
  return typeid(std::type_info).name();
}

DEVPROF_EXPORT const char* devprof_sink_platform() {
  return DEVPROF_PYBIND11_PLATFORM;
}

// 1: `reader` and `columns` are set; 0: the result holds no trace; -1: `error` says why not.
DEVPROF_EXPORT int devprof_sink_read(
    const ProfilerResult* result, void** reader, const DevprofSinkColumns** columns, char* error, uint64_t error_size) {
  return devprof::guarded(result, error, error_size, [&](libkineto::ActivityTraceInterface& trace) {
    auto made = std::make_unique<devprof::Reader>(trace, *result);
    *columns = &made->view;
    *reader = made.release();
  });
}

DEVPROF_EXPORT void devprof_sink_free(void* reader) {
  delete static_cast<devprof::Reader*>(reader);
}

// Saves as torch's own save does, which refuses a second time.
DEVPROF_EXPORT int devprof_sink_save(const ProfilerResult* result, const char* path, char* error, uint64_t error_size) {
  return devprof::guarded(
      result, error, error_size, [&](libkineto::ActivityTraceInterface& trace) { trace.save(path); });
}
