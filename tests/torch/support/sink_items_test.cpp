// The sink's reading of metadata text, alone: one text in, its values out as lines "kind key value".
#include "sink_items.h"

#include <cstdio>
#include <cstring>

static std::string answer;

static void put(const char* kind, const std::string& key, const std::string& value) {
  answer += kind + std::string("\x1f") + key + "\x1f" + value + "\x1e";
}

extern "C" __attribute__((visibility("default"))) const char* devprof_build_info() { return DEVPROF_BUILD_INFO; }

extern "C" __attribute__((visibility("default"))) const char* read_metadata(const char* text, uint64_t size) {
  devprof::Texts texts;
  devprof::ItemTable table(texts);
  table.addMetadataJson(5, std::string_view(text, size));
  answer.clear();
  for (const auto& items : table.all()) {
    char number[64];
    for (const int64_t value : items.ints.values) {
      put("int", items.key, std::to_string(value));
    }
    for (const double value : items.floats.values) {
      std::snprintf(number, sizeof number, "%.17g", value);
      put("float", items.key, number);
    }
    for (const uint8_t value : items.bools.values) {
      put("bool", items.key, value ? "true" : "false");
    }
    for (const int32_t value : items.texts.values) {
      put("text", items.key, texts.all()[value]);
    }
    for (const int32_t value : items.json.values) {
      put("json", items.key, texts.all()[value]);
    }
    if (items.nulls != 0) {
      put("null", items.key, std::to_string(items.nulls));
    }
  }
  return answer.c_str();
}
