// JSON's grammar over a buffer that nobody has checked. Strict: what is not JSON by its standard is not taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace devprof::json {

// Thrown where the text is no JSON, or holds what the decoders in Python are asked about.
struct NotTaken {};

struct Number {
  const char* begin;
  const char* end;
  bool negative;
  bool whole;             // without fraction and exponent
  bool has_exponent;
  const char* whole_begin;     // digits in front of the dot
  const char* whole_end;
  const char* fraction_begin;  // digits behind it; empty where there are none
  const char* fraction_end;

  std::string_view text() const { return {begin, static_cast<size_t>(end - begin)}; }
};

class Scanner {
 public:
  Scanner(const char* begin, const char* end) : at_(begin), end_(end) {}

  const char* at() const { return at_; }
  bool ended() const { return at_ == end_; }

  void space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) {
      ++at_;
    }
  }

  // The next byte, which is not taken; 0 where the text ends.
  char peek() const { return at_ == end_ ? '\0' : *at_; }

  // Takes space and the next byte, which is returned.
  char next() {
    space();
    if (at_ == end_) {
      throw NotTaken{};
    }
    return *at_++;
  }

  void expect(char wanted) {
    if (next() != wanted) {
      throw NotTaken{};
    }
  }

  // Takes a text if it stands here.
  bool take(std::string_view text) {
    if (static_cast<size_t>(end_ - at_) < text.size() || std::string_view(at_, text.size()) != text) {
      return false;
    }
    at_ += text.size();
    return true;
  }

  // Takes `"TEXT"` if it stands here; `text` must be such that it needs no escape.
  bool take_quoted(std::string_view text) {
    const size_t size = text.size() + 2;
    if (static_cast<size_t>(end_ - at_) < size || *at_ != '"' || at_[size - 1] != '"' ||
        std::string_view(at_ + 1, text.size()) != text) {
      return false;
    }
    at_ += size;
    return true;
  }

  // Takes a text in quotes. What is returned is good until the next call.
  std::string_view text();
  // Takes a number.
  Number number();
  // Takes any value, and returns its text as it is written.
  std::string_view value();

 private:
  void skip_value();
  void skip_text();
  void skip_word();
  const char* plain_end() const;
  const char* utf8_end(const char* at) const;
  const char* digits_end(const char* at) const;
  void unescape();
  uint32_t hex4();

  const char* at_;
  const char* end_;
  std::string unescaped_;
};

}  // namespace devprof::json
