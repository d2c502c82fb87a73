// Every difference between the torch versions that the bridge supports is in this file.
#pragma once

#include <torch/headeronly/version.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libkineto.h"
#include "output_base.h"

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 12
#error "devprof's bridge needs torch 2.12 or later"
#endif

// What pybind11 calls the platform of a torch wheel of this toolchain (pybind11/conduit/pybind11_platform_abi_id.h, which wants
// Python.h). Where torch was built otherwise, its conduit answers with nothing.
#define DEVPROF_TEXT_OF(value) #value
#define DEVPROF_TEXT(value) DEVPROF_TEXT_OF(value)
#ifdef _LIBCPP_ABI_VERSION
#define DEVPROF_PYBIND11_PLATFORM "system_libcpp_abi" DEVPROF_TEXT(_LIBCPP_ABI_VERSION)
#else
#define DEVPROF_PYBIND11_PLATFORM "system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_" DEVPROF_TEXT(_GLIBCXX_USE_CXX11_ABI)
#endif

#define DEVPROF_TORCH_AT_LEAST(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))

#if !DEVPROF_TORCH_AT_LEAST(14)
namespace libkineto {
// Not in the headers that 2.12 and 2.13 install; both export the function. 2.14 has registerLoggerFactory instead.
class ActivityProfilerController {
 public:
  static void addLoggerFactory(
      const std::string& protocol, std::function<std::unique_ptr<ActivityLogger>(const std::string&)> factory);
};
} // namespace libkineto
#endif

namespace devprof {

// The parameters of ActivityLogger::finalizeTrace: the last one, Kineto's log lines, is gone in 2.14.
using LogLines = std::unordered_map<std::string, std::vector<std::string>>;
#if DEVPROF_TORCH_AT_LEAST(14)
#define DEVPROF_LOG_LINES_PARAMETER
#define DEVPROF_LOG_LINES ::devprof::LogLines{}
#else
#define DEVPROF_LOG_LINES_PARAMETER , ::devprof::LogLines& log_lines
#define DEVPROF_LOG_LINES log_lines
#endif

inline void registerLoggerFactory(
    const std::string& protocol,
    std::function<std::unique_ptr<libkineto::ActivityLogger>(const std::string&)> factory) {
#if DEVPROF_TORCH_AT_LEAST(14)
  libkineto::registerLoggerFactory(protocol, std::move(factory));
#else
  libkineto::ActivityProfilerController::addLoggerFactory(protocol, std::move(factory));
#endif
}

// 2.12 takes (deviceId, id, sortIndex, name) through a constructor; from 2.13 on it is an aggregate that begins with the id.
// Four braced values compile on both, with different meaning.
inline libkineto::ResourceInfo makeResourceInfo(int64_t id, int64_t sort, int64_t device, const std::string& name) {
#if DEVPROF_TORCH_AT_LEAST(13)
  return libkineto::ResourceInfo{id, sort, device, name};
#else
  return libkineto::ResourceInfo(device, id, sort, name);
#endif
}

inline libkineto::DeviceInfo makeDeviceInfo(
    int64_t id, int64_t sort, const std::string& name, const std::string& label) {
#if DEVPROF_TORCH_AT_LEAST(13)
  return libkineto::DeviceInfo{id, sort, name, label};
#else
  return libkineto::DeviceInfo(id, sort, name, label);
#endif
}

// From 2.14 on torch cleans the names that it gives to Kineto; its own events keep them as they were.
constexpr bool kActivityNamesAreCleaned = DEVPROF_TORCH_AT_LEAST(14);

// Kineto prints an activity's metadata through a stream, which takes most of the time there is, and pastes text into it without
// escapes. An explicit instantiation may name a private member: it gives the values as they were added.
#if DEVPROF_TORCH_AT_LEAST(14)
using AddedMetadata = std::unordered_map<std::string, libkineto::TypedValue>;
#else
using AddedMetadata = std::unordered_map<std::string, std::pair<std::string, bool>>; // value, and whether it is text
#endif
using AddedMetadataMember = AddedMetadata libkineto::GenericTraceActivity::*;
struct AddedMetadataTag {
  friend AddedMetadataMember memberOf(AddedMetadataTag);
};
template <AddedMetadataMember member>
struct AddedMetadataNamed {
  friend AddedMetadataMember memberOf(AddedMetadataTag) { return member; }
};
template struct AddedMetadataNamed<&libkineto::GenericTraceActivity::metadataMap_>;

#if DEVPROF_TORCH_AT_LEAST(14)
inline std::string printed(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}
template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
std::string printed(Number value) {
  return fmt::format("{}", value);
}
inline std::string printed(const libkineto::RawJson& json) {
  return json.value;
}
template <typename... Kinds>
std::string printed(const std::variant<Kinds...>& value);
template <typename Item>
std::string printed(const std::vector<Item>& items) {
  std::string out = "[";
  for (const auto& item : items) {
    out += (out.size() > 1 ? ", " : "") + printed(item);
  }
  return out + "]";
}
template <typename... Kinds>
std::string printed(const std::variant<Kinds...>& value) {
  return std::visit([](const auto& one) { return printed(one); }, value);
}
#endif

// Calls `value(key, JSON)` or `text(key, text)` for everything that was added to an activity.
template <typename Value, typename Text>
void visitAddedMetadata(const libkineto::GenericTraceActivity& activity, Value&& value, Text&& text) {
  for (const auto& [key, added] : activity.*memberOf(AddedMetadataTag{})) {
#if DEVPROF_TORCH_AT_LEAST(14)
    if (const auto* one = std::get_if<std::string>(&added)) {
      text(key, *one);
    } else {
      value(key, printed(added));
    }
#else
    if (added.second) {
      text(key, added.first);
    } else {
      value(key, added.first);
    }
#endif
  }
}

} // namespace devprof
