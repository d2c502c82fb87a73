#include "sink_items.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace devprof {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool readInt(std::string_view text, int64_t& value) {
  const size_t digits = text.size() - (text.front() == '-');
  const size_t first = text.size() - digits;
  if (digits == 0 || (text[first] == '0' && digits > 1)) { // 007 is not JSON's
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool readFloat(std::string_view text, double& value) {
  const bool number = text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  const bool named = text == "nan" || text == "-nan" || text == "inf" || text == "-inf";
  // more digits than a double holds are left to JSON, so that nothing of them is lost
  if ((!number && !named) || text.find_first_of(named ? "n" : ".eE") == std::string_view::npos) {
    return false;
  }
  const std::string copy(text);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() && (named || std::isfinite(value));
}

// Whether a value may end before `at`: there is the end of the text, or a comma and the next key.
bool endsBefore(std::string_view text, size_t at) {
  const size_t next = text.find_first_not_of(kBlank, at);
  if (next == std::string_view::npos) {
    return true;
  }
  const size_t key = text[next] == ',' ? text.find_first_not_of(kBlank, next + 1) : std::string_view::npos;
  return key != std::string_view::npos && text[key] == '"';
}

// The closing quote of a string that begins at `from` (after its quote). A text may hold raw quotes: Kineto escapes none.
size_t closingQuote(std::string_view text, size_t from) {
  for (size_t at = from; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"' && endsBefore(text, at + 1)) {
      return at;
    }
  }
  return text.size();
}

// Where a list or object ends whose quotes do not match: behind the first closing bracket that a value may end with.
size_t endOfBroken(std::string_view text, size_t from) {
  for (size_t at = from; at < text.size(); ++at) {
    if ((text[at] == ']' || text[at] == '}') && endsBefore(text, at + 1)) {
      return at + 1;
    }
  }
  return text.size();
}

// The end of any other value that begins at `from`: the next comma outside brackets and strings.
size_t endOfValue(std::string_view text, size_t from) {
  int depth = 0;
  bool quoted = false;
  for (size_t at = from; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      at += c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      return at;
    }
  }
  return quoted || depth > 0 ? endOfBroken(text, from) : text.size();
}

// `\"` and `\\` of a text that was escaped; any other backslash is the text's own.
std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const bool escape = text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\');
    at += escape;
    out.push_back(text[at]);
  }
  return out;
}

} // namespace

int32_t Texts::number(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) {
    return found->second;
  }
  const auto number = static_cast<int32_t>(all_.size());
  numbers_.emplace(all_.emplace_back(text), number);
  return number;
}

Items& ItemTable::of(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) {
    return *found->second;
  }
  Items& items = all_.emplace_back();
  items.key = key;
  by_key_.emplace(items.key, &items);
  return items;
}

void ItemTable::addText(std::string_view key, uint32_t event, std::string_view text) {
  of(key).texts.add(event, texts_.number(text));
}

void ItemTable::addPrinted(std::string_view key, uint32_t event, std::string_view given) {
  const std::string_view value = trimmed(given);
  Items& items = of(key);
  int64_t whole = 0;
  double real = 0;
  if (value.empty() || value == "null") {
    ++items.nulls;
  } else if (readInt(value, whole)) {
    items.ints.add(event, whole);
  } else if (value == "true" || value == "false") {
    items.bools.add(event, value == "true");
  } else if (readFloat(value, real)) {
    items.floats.add(event, real);
  } else if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    items.texts.add(event, texts_.number(value.substr(1, value.size() - 2)));
  } else {
    items.json.add(event, texts_.number(value));
  }
}

void ItemTable::addMetadataJson(uint32_t event, std::string_view text) {
  size_t at = text.find('"');
  while (at < text.size()) {
    const size_t key_end = text.find("\":", at + 1);
    if (key_end == std::string_view::npos) {
      return;
    }
    const std::string_view key = text.substr(at + 1, key_end - at - 1);
    const size_t from = text.find_first_not_of(kBlank, key_end + 2);
    if (from == std::string_view::npos) {
      return;
    }
    size_t end;
    if (text[from] == '"') {
      end = closingQuote(text, from + 1);
      const std::string_view value = text.substr(from + 1, end - from - 1);
      const std::string plain = unescaped(value);
      addText(key, event, plain);
      end += end < text.size();
    } else {
      end = endOfValue(text, from);
      addPrinted(key, event, text.substr(from, end - from));
    }
    at = text.find('"', end);
  }
}

} // namespace devprof
