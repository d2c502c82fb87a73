// The C ABI of the sink; devprof/torch/sink_native.py mirrors the structs field by field. All pointers belong to the reader.
#pragma once

#include <cstdint>

extern "C" {
struct DevprofSinkItems {
  const char* key;
  uint64_t key_size;
  uint64_t nulls;
  uint64_t counts[5]; // int64, float64, uint8 bool, int32 text, int32 JSON text
  const uint32_t* events[5];
  const void* values[5];
};

struct DevprofSinkRow {
  int64_t device, resource, on_device, torch_thread;
};

struct DevprofSinkDevice {
  int64_t id, sort;
  const char *name, *label;
};

struct DevprofSinkResource {
  int64_t device, id, sort;
  const char* name;
};

struct DevprofSinkSpan {
  int64_t start_ns, end_ns, op_count, iteration;
  const char *name, *prefix;
};

struct DevprofSinkFact {
  const char *key, *value;
};

struct DevprofSinkColumns {
  uint64_t n;
  const uint8_t *type, *flow_type, *flow_start;
  const int32_t *name, *row, *linked_event;
  const int64_t *start, *end, *id, *linked, *flow_id;
  const char* text; // all texts, one after another
  const uint64_t* text_offsets; // n_texts + 1 offsets into text
  uint64_t n_texts;
  const DevprofSinkItems *items, *counters;
  uint64_t n_items, n_counters;
  const DevprofSinkRow* rows;
  uint64_t n_rows;
  const DevprofSinkDevice* devices;
  uint64_t n_devices;
  const DevprofSinkResource* resources;
  uint64_t n_resources;
  const DevprofSinkSpan* spans;
  uint64_t n_spans;
  const DevprofSinkFact *facts, *lines; // values are JSON text; lines of Kineto's log by severity
  uint64_t n_facts, n_lines;
  const char* device_properties; // JSON objects, comma-joined
  int64_t window_start_ns, window_end_ns;
};
}
