// Every difference between the torch versions that the bridge supports is in this file.
#pragma once

#include <torch/headeronly/version.h>

#include <memory>
#include <string>

#include "libkineto.h"
#include "output_base.h"

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 12
#error "devprof's bridge needs torch 2.12 or later"
#endif

#define DEVPROF_TORCH_AT_LEAST(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))

namespace devprof {

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
