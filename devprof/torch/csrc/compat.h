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

} // namespace devprof
