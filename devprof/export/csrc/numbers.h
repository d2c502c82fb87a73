// Numbers as text. Each function writes at `at`, at most the bytes that its constant says, and returns the end.
#pragma once

#include <cstdint>

namespace devprof {

constexpr int64_t kMostOfInt = 20;     // -9223372036854775808
constexpr int64_t kMostOfTime = 24;    // 18446744073709551.615
constexpr int64_t kMostOfDouble = 32;  // -2.2250738585072014e-308

char* put_int(char* at, int64_t value);

// Nanoseconds as microseconds with three decimals.
char* put_time(char* at, uint64_t elapsed_ns);

// A finite number as Python's repr() has it: the shortest digits that read back, and an exponent from 1e16 on and below 1e-4.
char* put_double(char* at, double value);

}  // namespace devprof
