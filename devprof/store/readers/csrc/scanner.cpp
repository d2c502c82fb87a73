#include "scanner.h"

#include <cstring>

namespace devprof::json {

namespace {

constexpr int kDeepest = 128;
constexpr int kMostDigits = 400;
constexpr uint64_t kOnes = 0x0101010101010101ULL;
constexpr uint64_t kHighs = 0x8080808080808080ULL;

// Nonzero where one of eight bytes is a quote, a backslash, a control character, or not ASCII.
uint64_t special_of(uint64_t eight) {
  const uint64_t quote = eight ^ (kOnes * '"');
  const uint64_t backslash = eight ^ (kOnes * '\\');
  const uint64_t found = (quote - kOnes) | (backslash - kOnes) | (eight - kOnes * 0x20) | eight;
  return found & kHighs;
}

bool is_special(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

// Where the run of bytes that stand for themselves ends.
const char* Scanner::plain_end() const {
  const char* at = at_;
  while (end_ - at >= 8) {
    uint64_t eight;
    std::memcpy(&eight, at, 8);
    if (special_of(eight) != 0) {
      break;
    }
    at += 8;
  }
  while (at != end_ && !is_special(*at)) {
    ++at;
  }
  return at;
}

// Where the character that begins here ends; it is not ASCII. Source: the Unicode Standard, table 3-7.
const char* Scanner::utf8_end(const char* at) const {
  const auto lead = static_cast<unsigned char>(*at);
  int more;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    more = 2;
    low = lead == 0xE0 ? 0xA0 : 0x80;
    high = lead == 0xED ? 0x9F : 0xBF;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3;
    low = lead == 0xF0 ? 0x90 : 0x80;
    high = lead == 0xF4 ? 0x8F : 0xBF;
  } else {
    throw NotTaken{};
  }
  if (end_ - at <= more) {
    throw NotTaken{};
  }
  for (int i = 1; i <= more; ++i) {
    const auto byte = static_cast<unsigned char>(at[i]);
    if (byte < low || byte > high) {
      throw NotTaken{};
    }
    low = 0x80;
    high = 0xBF;
  }
  return at + more + 1;
}

std::string_view Scanner::text() {
  expect('"');
  const char* begin = at_;
  while (true) {
    at_ = plain_end();
    if (at_ == end_) {
      throw NotTaken{};
    }
    if (*at_ == '"') {
      return {begin, static_cast<size_t>(at_++ - begin)};
    }
    if (*at_ == '\\') {
      break;
    }
    at_ = utf8_end(at_);  // throws at a control character
  }
  unescaped_.assign(begin, at_);
  while (true) {
    if (*at_ == '"') {
      ++at_;
      return unescaped_;
    }
    if (*at_ == '\\') {
      unescape();
    } else {
      const char* until = utf8_end(at_);
      unescaped_.append(at_, until);
      at_ = until;
    }
    begin = at_;
    at_ = plain_end();
    unescaped_.append(begin, at_);
    if (at_ == end_) {
      throw NotTaken{};
    }
  }
}

void Scanner::unescape() {
  ++at_;
  if (at_ == end_) {
    throw NotTaken{};
  }
  const char kind = *at_++;
  static constexpr std::string_view kLetters = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t which = kLetters.find(kind); which != std::string_view::npos) {
    unescaped_ += kMeanings[which];
    return;
  }
  if (kind != 'u') {
    throw NotTaken{};
  }
  uint32_t code = hex4();
  if (code >= 0xD800 && code <= 0xDFFF) {
    // half a character alone is something that Python's texts can hold and UTF-8 cannot
    if (code >= 0xDC00 || !take("\\u")) {
      throw NotTaken{};
    }
    const uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) {
      throw NotTaken{};
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(unescaped_, code);
}

uint32_t Scanner::hex4() {
  if (end_ - at_ < 4) {
    throw NotTaken{};
  }
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = *at_++;
    if (is_digit(c)) {
      code = code * 16 + static_cast<uint32_t>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      code = code * 16 + static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      throw NotTaken{};
    }
  }
  return code;
}

const char* Scanner::digits_end(const char* at) const {
  const char* begin = at;
  while (at != end_ && is_digit(*at)) {
    ++at;
  }
  if (at == begin || at - begin > kMostDigits) {
    throw NotTaken{};
  }
  return at;
}

Number Scanner::number() {
  space();
  Number found{};
  found.begin = at_;
  found.negative = peek() == '-';
  at_ += found.negative ? 1 : 0;
  found.whole_begin = at_;
  at_ = found.whole_end = digits_end(at_);
  if (*found.whole_begin == '0' && found.whole_end - found.whole_begin > 1) {
    throw NotTaken{};
  }
  found.fraction_begin = found.fraction_end = at_;
  if (peek() == '.') {
    found.fraction_begin = at_ + 1;
    at_ = found.fraction_end = digits_end(at_ + 1);
  }
  if (peek() == 'e' || peek() == 'E') {
    found.has_exponent = true;
    ++at_;
    if (peek() == '+' || peek() == '-') {
      ++at_;
    }
    at_ = digits_end(at_);
  }
  found.end = at_;
  found.whole = !found.has_exponent && found.fraction_begin == found.fraction_end;
  return found;
}

std::string_view Scanner::value() {
  space();
  const char* begin = at_;
  skip_value();
  return {begin, static_cast<size_t>(at_ - begin)};
}

void Scanner::skip_text() {
  while (true) {
    at_ = plain_end();
    if (at_ == end_) {
      throw NotTaken{};
    }
    if (*at_ == '"') {
      ++at_;
      return;
    }
    if (*at_ != '\\') {
      at_ = utf8_end(at_);
      continue;
    }
    ++at_;
    const char kind = peek();
    if (kind == 'u') {
      ++at_;
      hex4();
    } else if (kind != '\0' && std::strchr("\"\\/bfnrt", kind) != nullptr) {
      ++at_;
    } else {
      throw NotTaken{};
    }
  }
}

void Scanner::skip_word() {
  if (!take("true") && !take("false") && !take("null")) {
    throw NotTaken{};
  }
}

// Without recursion: a file cannot exhaust the stack.
void Scanner::skip_value() {
  char open[kDeepest];
  int depth = 0;
  while (true) {
    // a value, or a list or object that begins
    space();
    const char first = peek();
    if (first == '[' || first == '{') {
      if (depth == kDeepest) {
        throw NotTaken{};
      }
      ++at_;
      open[depth++] = first;
      space();
      if (peek() != (first == '[' ? ']' : '}')) {
        if (first == '{') {
          expect('"');
          skip_text();
          expect(':');
        }
        continue;
      }
      ++at_;
      --depth;
    } else if (first == '"') {
      ++at_;
      skip_text();
    } else if (first == '-' || is_digit(first)) {
      number();
    } else {
      skip_word();
    }
    // what follows it
    while (depth != 0) {
      const char inside = open[depth - 1];
      const char c = next();
      if (c == ',') {
        if (inside == '{') {
          expect('"');
          skip_text();
          expect(':');
        }
        break;
      }
      if (c != (inside == '[' ? ']' : '}')) {
        throw NotTaken{};
      }
      --depth;
    }
    if (depth == 0) {
      return;
    }
  }
}

}  // namespace devprof::json
