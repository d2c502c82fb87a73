#include "numbers.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace devprof {

namespace {

constexpr double kExactInteger = 9007199254740992.0;  // 2**53: below it every whole number is its own shortest text
constexpr int kFixedFrom = -4, kFixedBelow = 16;      // exponents that repr() writes without "e"
constexpr int kDecimal = 10;

char* put_digits(char* at, const char* digits, int count) {
  std::memcpy(at, digits, static_cast<size_t>(count));
  return at + count;
}

char* put_zeros(char* at, int count) {
  std::memset(at, '0', static_cast<size_t>(count));
  return at + count;
}

char* put_exponent(char* at, int exponent) {
  *at++ = 'e';
  *at++ = exponent < 0 ? '-' : '+';
  const int size = exponent < 0 ? -exponent : exponent;
  if (size < kDecimal) *at++ = '0';
  return std::to_chars(at, at + kMostOfInt, size).ptr;
}

}  // namespace

char* put_int(char* at, int64_t value) { return std::to_chars(at, at + kMostOfInt, value).ptr; }

char* put_time(char* at, uint64_t elapsed_ns) {
  constexpr uint64_t kPerMicrosecond = 1000;
  at = std::to_chars(at, at + kMostOfInt, elapsed_ns / kPerMicrosecond).ptr;
  const unsigned rest = static_cast<unsigned>(elapsed_ns % kPerMicrosecond);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  return at;
}

char* put_double(char* at, double value) {
  if (std::signbit(value)) {
    *at++ = '-';
    value = -value;
  }
  if (value < kExactInteger && value == std::trunc(value)) {
    at = put_int(at, static_cast<int64_t>(value));
    *at++ = '.';
    *at++ = '0';
    return at;
  }
  char shortest[kMostOfDouble];  // d.ddde-xx, or de-xx
  const char* const end = std::to_chars(shortest, shortest + sizeof shortest, value, std::chars_format::scientific).ptr;
  const char* const e = static_cast<const char*>(std::memchr(shortest, 'e', static_cast<size_t>(end - shortest)));
  int exponent = 0;
  std::from_chars(e + (e[1] == '+' ? 2 : 1), end, exponent);
  char digits[kMostOfDouble];
  digits[0] = shortest[0];
  const int count = e - shortest > 2 ? static_cast<int>(e - shortest) - 1 : 1;
  std::memcpy(digits + 1, shortest + 2, static_cast<size_t>(count - 1));
  if (exponent < kFixedFrom || exponent >= kFixedBelow) {
    *at++ = digits[0];
    if (count > 1) {
      *at++ = '.';
      at = put_digits(at, digits + 1, count - 1);
    }
    return put_exponent(at, exponent);
  }
  if (exponent < 0) {
    *at++ = '0';
    *at++ = '.';
    at = put_zeros(at, -exponent - 1);
    return put_digits(at, digits, count);
  }
  const int whole = exponent + 1;
  if (count <= whole) {
    at = put_digits(at, digits, count);
    at = put_zeros(at, whole - count);
    *at++ = '.';
    *at++ = '0';
    return at;
  }
  at = put_digits(at, digits, whole);
  *at++ = '.';
  return put_digits(at, digits + whole, count - whole);
}

}  // namespace devprof
