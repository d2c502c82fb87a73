// Requests that reach Kineto from outside (a daemon such as dynolog), handed on to a thread of Python's.
//
// Kineto calls a session on threads of its own, under its mutex, where taking the GIL deadlocks. So the calls only leave an event
// here, and a thread that Python started for this waits for them with the GIL released.
#pragma once

#include <cstdint>

extern "C" struct DevprofDemandEvent { // devprof/torch/native_types.py mirrors it
  uint64_t generation; // of the capture
  uint64_t types; // bit n: ActivityType n was asked for; kByIteration: the request counts steps
  int64_t time_ns; // when it happened, Unix ns
  int32_t kind; // devprof::demand::Kind
};

namespace devprof::demand {

enum Kind : int32_t { kConfigured = 1, kStarted = 2, kStopped = 3, kGone = 4 };

constexpr uint64_t kByIteration = uint64_t{1} << 63;

// How long Kineto's thread waits at most, in all, for the records of a capture.
constexpr int64_t kPatienceMs = 200;

// Whether somebody in Python serves requests.
bool isServed();
void post(const DevprofDemandEvent& event);
// A capture whose records did not come in time.
void countWithoutData();

} // namespace devprof::demand
