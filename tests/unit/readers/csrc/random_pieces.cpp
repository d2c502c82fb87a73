// Decodes random pieces of Chrome traces, whole and damaged ones, under sanitizers. Every piece has its exact size on the heap.
// Usage: random_pieces SEED PIECES. Prints how many were taken; exits with 1 where the columns do not hold together.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "events.h"

namespace {

using devprof::json::Events;

std::mt19937_64 generator;

int64_t below(int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(n)); }

template <size_t n>
std::string one_of(const char* const (&texts)[n]) {
  return texts[below(static_cast<int64_t>(n))];
}

std::string value(int depth);

std::string number() {
  const char* const odd[] = {"0",    "-0",     "1e5",     "1E-400", "123456789012345678901234567890", "5128896227060.0339",
                             "-1.5", "0.0005", "9.99e17", "1e999",  "-9223372036854775808",           "1790857026000123.4567"};
  if (below(2) == 0) return one_of(odd);
  std::string text = std::to_string(static_cast<int64_t>(generator()) >> below(64));
  if (below(2) == 0) text += "." + std::to_string(below(10000));
  return text;
}

std::string text() {
  const char* const parts[] = {"a", "aten::mm", "\\n", "\\u0041", "\\ud83d\\ude00", "\xc3\xa9", "\xe2\x82\xac", " ", "\\\"",
                               "\\\\", "\\ud800", "\xff", "\xc0\x80", "\x01"};
  std::string made = "\"";
  for (int64_t i = below(5); i > 0; --i) made += below(60) == 0 ? one_of(parts) : std::string(parts[below(10)]);
  if (below(30) == 0) made += std::string(static_cast<size_t>(below(5000)), 'x');
  return made + "\"";
}

std::string value(int depth) {
  switch (below(depth > 0 ? 7 : 5)) {
    case 0:
      return number();
    case 1:
    case 2:
      return text();
    case 3:
      return below(2) == 0 ? "true" : "false";
    case 4:
      return "null";
    default: {
      const bool is_list = below(2) == 0;
      std::string made = is_list ? "[" : "{";
      for (int64_t i = below(4); i > 0; --i) {
        made += (is_list ? "" : text() + ":") + value(depth - 1) + (i > 1 ? ", " : "");
      }
      return made + (is_list ? "]" : "}");
    }
  }
}

std::string args() {
  std::string made = "{";
  for (int64_t i = below(6); i > 0; --i) made += "\"" + std::to_string(i) + text().substr(1) + ": " + value(3) + (i > 1 ? "," : "");
  return made + "}";
}

std::string field(const std::string& key) {
  const char* const phases[] = {"\"X\"", "\"i\"", "\"M\"", "\"C\"", "\"s\"", "\"f\"", "\"B\""};
  if (below(40) == 0) return value(2);
  if (key == "ph") return one_of(phases);
  if (key == "ts" || key == "dur") return number();
  if (key == "pid" || key == "tid" || key == "id") return std::to_string(static_cast<int64_t>(generator()) >> below(64));
  return key == "args" ? args() : text();
}

std::string event() {
  const char* const keys[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "s", "bp", "args", "sf", "\\u0070h"};
  std::string made;
  for (const char* const key : keys) {
    if (below(5) == 0 || (key[0] == '\\' && below(20) > 0)) continue;
    made += (made.empty() ? "\"" : ",\"") + std::string(key) + (below(4) == 0 ? "\" : " : "\":") + field(key);
  }
  return "{" + made + "}";
}

void damage(std::string& piece) {
  for (int64_t i = below(4); i > 0 && !piece.empty(); --i) {
    const size_t at = static_cast<size_t>(below(static_cast<int64_t>(piece.size())));
    switch (below(3)) {
      case 0:
        piece[at] = static_cast<char>(generator());
        break;
      case 1:
        piece.erase(at, static_cast<size_t>(1 + below(9)));
        break;
      default:
        piece.insert(at, 1, "{}[]\",:\\e0"[below(10)]);
    }
  }
  if (below(3) == 0) piece.resize(static_cast<size_t>(below(static_cast<int64_t>(piece.size()) + 1)));
}

// Whether the columns are as long as there are events, and their numbers are those of texts and kinds that there are.
bool holds_together(const Events& events, int64_t n) {
  const auto& c = events.columns;
  const auto size = static_cast<size_t>(n);
  if (c.kind.size() != size || c.track.size() != size || c.name.size() != size || c.scope.size() != size ||
      c.start_ns.size() != size || c.duration_ns.size() != size || c.id.size() != size || c.id_kind.size() != size ||
      c.start_state.size() != size || c.duration_state.size() != size) {
    return false;
  }
  for (size_t i = 0; i < size; ++i) {
    if (static_cast<size_t>(c.kind[i]) >= events.kinds.size() || static_cast<size_t>(c.track[i]) >= events.tracks.size()) return false;
    if (c.name[i] >= static_cast<int64_t>(events.texts.size())) return false;
  }
  for (const auto& column : events.args) {
    if (column.events.size() != column.values.size()) return false;
    for (size_t i = 0; i < column.events.size(); ++i) {
      if (column.events[i] < 0 || column.events[i] >= n) return false;
      const auto texts = column.kind == devprof::json::kText ? events.texts.size() : events.raws.size();
      const bool is_text = column.kind == devprof::json::kText || column.kind == devprof::json::kRaw;
      if (is_text && static_cast<size_t>(column.values[i]) >= texts) return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  generator.seed(std::strtoull(argv[1], nullptr, 10));
  const int64_t pieces = std::strtoll(argv[2], nullptr, 10);
  int64_t taken = 0;
  auto events = std::make_unique<Events>(generator());
  for (int64_t i = 0; i < pieces; ++i) {
    if (below(20) == 0) events = std::make_unique<Events>(generator());
    std::string piece;
    for (int64_t k = below(8); k > 0; --k) piece += event() + (k > 1 ? ",\n" : "");
    if (below(2) == 0) damage(piece);
    const std::unique_ptr<char[]> exact(new char[piece.size()]);
    std::memcpy(exact.get(), piece.data(), piece.size());
    try {
      const int64_t n = events->decode(exact.get(), exact.get() + piece.size(), below(2) == 0);
      ++taken;
      if (!holds_together(*events, n)) {
        std::fprintf(stderr, "piece %lld: %s\n", static_cast<long long>(i), piece.c_str());
        return 1;
      }
    } catch (const devprof::json::NotTaken&) {
    }
  }
  std::printf("%lld decoded, %lld taken\n", static_cast<long long>(pieces), static_cast<long long>(taken));
  return 0;
}
