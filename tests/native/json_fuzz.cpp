// Feeds the decoder with edited traces, each in a buffer of exactly its size, so that a sanitizer sees every byte read too many.
//
//   json_fuzz SECONDS SEED FILE...     FILE: text of a list's events, without its brackets
//
// Prints how many texts it has tried, and how many of them were taken. Each text that is taken is decoded again by a decoder that
// has seen nothing before, which must say the same.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "events.h"

namespace {

using devprof::json::Events;
using devprof::json::NotTaken;

const std::vector<std::string> kTokens{
    "\"",    "{",      "}",     "[",       "]",         ",",          ":",       "\\",          "null",     "-1",
    "1e999", "NaN",    "-",     "0",       "\\u00",     "\\ud800",    "\\udc00", "\\ud83d\\ude00", "\xff",  "\xc3",
    "\xe2\x82\xac", "\xed\xa0\x80", "\xf4\x90\x80\x80", "true",       "fals",    "\"x\"",       "{}",       "[]",
    "[[[[[[[[", "]]]]", "},{",  "9999999999999999999", "-9223372036854775808", "9223372036854775808", "0.1234567890123456789",
    "\"ts\":\"7\"", "\"dur\":null", "\"pid\":{}", "\"args\":", "\"id\":\"0x1\"", "\"cat\":5", "1E-5", ".5", "1.", "\t", "\n",
};

class Editor {
 public:
  Editor(std::vector<std::string> corpus, uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  std::string next() {
    std::string text = window(corpus_[below(corpus_.size())]);
    for (size_t left = below(6); left != 0; --left) {
      edit(text);
    }
    return text;
  }

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

 private:
  // A part of a text that begins where an event may begin.
  std::string window(const std::string& text) {
    if (text.size() < 4000) {
      return text;
    }
    const size_t found = text.find("{\"", below(text.size()));
    const size_t begin = found == std::string::npos ? 0 : found;
    std::string part = text.substr(begin, 200 + below(3000));
    const size_t end = below(2) != 0 ? part.rfind("},") : std::string::npos;
    return end == std::string::npos ? part : part.substr(0, end + 1);
  }

  void edit(std::string& text) {
    const size_t at = below(text.size() + 1);
    const size_t length = std::min(below(2) != 0 ? below(4) : below(60), text.size() - at);
    switch (below(6)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        if (at < text.size()) {
          text[at] = static_cast<char>(below(256));
        }
        break;
      case 4:
        text.insert(at, std::string(below(300), "[{\"9 "[below(5)]));
        break;
      default:
        text.replace(at, length, kTokens[below(kTokens.size())]);
    }
  }

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

int64_t decoded(Events& events, const std::string& text, bool exact) {
  const std::unique_ptr<char[]> exactly(new char[text.size()]);
  text.copy(exactly.get(), text.size());
  try {
    return events.decode(exactly.get(), exactly.get() + text.size(), exact);
  } catch (const NotTaken&) {
    return -1;
  }
}

bool same(const Events& one, const Events& other, int64_t n) {
  const auto& a = one.columns;
  const auto& b = other.columns;
  if (a.start_ns != b.start_ns || a.duration_ns != b.duration_ns || a.start_state != b.start_state || a.inexact != b.inexact) {
    return false;
  }
  for (size_t at = 0; at < static_cast<size_t>(n); ++at) {
    const bool named = a.name[at] >= 0;
    if (named != (b.name[at] >= 0) || (named && one.texts.view(a.name[at]) != other.texts.view(b.name[at]))) {
      return false;
    }
  }
  size_t values = 0;
  size_t other_values = 0;
  for (const auto& column : one.args) {
    values += column.values.size();
  }
  for (const auto& column : other.args) {
    other_values += column.values.size();
  }
  return values == other_values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "json_fuzz SECONDS SEED FILE...\n");
    return 2;
  }
  std::vector<std::string> corpus;
  for (int at = 3; at < argc; ++at) {
    std::ifstream file(argv[at], std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  Editor editor(std::move(corpus), std::strtoull(argv[2], nullptr, 10));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<long>(std::atof(argv[1]) * 1000));
  size_t tried = 0;
  size_t taken = 0;
  auto events = std::make_unique<Events>(1);
  while (std::chrono::steady_clock::now() < until) {
    if (tried % 1000 == 0) {
      events = std::make_unique<Events>(tried);  // or what it remembers would fill the memory
    }
    const std::string text = editor.next();
    const bool exact = editor.below(2) != 0;
    const int64_t n = decoded(*events, text, exact);
    Events fresh(7);
    if (n != decoded(fresh, text, exact) || (n >= 0 && !same(*events, fresh, n))) {
      std::fprintf(stderr, "a second decoder says otherwise of:\n%s\n", text.c_str());
      return 1;
    }
    taken += n >= 0 ? 1 : 0;
    ++tried;
  }
  std::printf("%zu %zu\n", tried, taken);
  return 0;
}
