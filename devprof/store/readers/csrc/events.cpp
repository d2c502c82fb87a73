#include "events.h"

#include <charconv>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace devprof::json {

namespace {

constexpr size_t kMostColumns = 4096;  // more than that are forgotten after each piece
constexpr uint64_t kFarthestNs = 1ULL << 62;
constexpr uint64_t kNearUs = 1ULL << 43;  // below it a double tells nanoseconds apart; as in json_times.py

enum Field { kPh, kCat, kName, kPid, kTid, kTs, kDur, kId, kScope, kBp, kArgs, kOther };

Field field_of(std::string_view key) {
  static constexpr std::array<std::string_view, kOther> kFields{"ph", "cat", "name", "pid", "tid", "ts",
                                                                "dur", "id", "s", "bp", "args"};
  for (int i = 0; i < kOther; ++i) {
    if (kFields[static_cast<size_t>(i)] == key) {
      return static_cast<Field>(i);
    }
  }
  return kOther;
}

// Whole nanoseconds of a number of microseconds, exact; rounded half away from zero.
Time time_of(const Number& number, const char* piece) {
  Time time;
  time.begin = number.begin - piece;
  time.end = number.end - piece;
  if (number.has_exponent) {
    time.state = kOdd;
    return time;
  }
  if (number.whole_end - number.whole_begin > 16) {
    return time;
  }
  uint64_t us = 0;
  for (const char* at = number.whole_begin; at != number.whole_end; ++at) {
    us = us * 10 + static_cast<uint64_t>(*at - '0');
  }
  if (us > kFarthestNs / 1000) {
    return time;
  }
  uint64_t ns = us;
  const char* at = number.fraction_begin;
  for (int place = 0; place < 3; ++place) {
    ns = ns * 10 + (at < number.fraction_end ? static_cast<uint64_t>(*at++ - '0') : 0);
  }
  ns += at < number.fraction_end && *at >= '5' ? 1 : 0;
  if (ns < kFarthestNs) {
    time.state = kSound;
    time.ns = number.negative ? -static_cast<int64_t>(ns) : static_cast<int64_t>(ns);
  }
  return time;
}

// True where the double of a number and its text give the same nanosecond: no more digits than that, and near enough.
bool says_nanoseconds(const Number& number) {
  const auto digits = number.whole_end - number.whole_begin;
  const bool near = digits <= 12 || (digits == 13 && *number.whole_begin <= '7');
  static_assert(8'000'000'000'000 < kNearUs);
  return near && !number.has_exponent && number.fraction_end - number.fraction_begin <= 3;
}

// Powers of ten that a double holds exactly.
constexpr std::array<double, 23> kTens{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

double float_of(const Number& number) {
#if FLT_EVAL_METHOD == 0
  const auto fraction = number.fraction_end - number.fraction_begin;
  const auto digits = (number.whole_end - number.whole_begin) + fraction;
  if (!number.has_exponent && digits <= 15) {
    // both are exact, so that the quotient is the nearest double
    uint64_t all = 0;
    for (const char* at = number.whole_begin; at != number.whole_end; ++at) {
      all = all * 10 + static_cast<uint64_t>(*at - '0');
    }
    for (const char* at = number.fraction_begin; at != number.fraction_end; ++at) {
      all = all * 10 + static_cast<uint64_t>(*at - '0');
    }
    const double value = static_cast<double>(all) / kTens[static_cast<size_t>(fraction)];
    return number.negative ? -value : value;
  }
#endif
#ifdef __cpp_lib_to_chars
  double value = 0;
  const auto [end, error] = std::from_chars(number.begin, number.end, value);
  if (error == std::errc() && end == number.end) {
    return value;
  }
#endif
  throw NotTaken{};
}

}  // namespace

struct Events::Event {
  int32_t phase = -1;
  int32_t category = -1;
  int32_t name = -1;
  int32_t scope = -1;
  Value pid, tid, id;
  Time start, duration;
  uint32_t seen = 0;  // fields, as bits
};

void Columns::clear() {
  for (auto* column : {&kind, &track, &name, &scope, &id_kind}) {
    column->clear();
  }
  for (auto* column : {&start_ns, &duration_ns, &id}) {
    column->clear();
  }
  start_state.clear();
  duration_state.clear();
  odd.clear();
  inexact = false;
}

size_t Events::TrackHash::operator()(const Track& track) const {
  const auto kinds = static_cast<uint64_t>(track.pid_kind * kKinds + track.tid_kind);
  const uint64_t pid = mix(static_cast<uint64_t>(track.pid) ^ seed, kinds + 0x9e3779b97f4a7c15ULL);
  return static_cast<size_t>(mix(static_cast<uint64_t>(track.tid) ^ pid, 0x8ebc6af09c88c6e3ULL ^ seed));
}

bool Events::TrackEqual::operator()(const Track& one, const Track& other) const {
  return one.pid_kind == other.pid_kind && one.tid_kind == other.tid_kind && one.pid == other.pid &&
         one.tid == other.tid;
}

int64_t Events::decode(const char* begin, const char* end, bool exact) {
  if (end - begin > std::numeric_limits<int32_t>::max()) {
    throw NotTaken{};
  }
  start_piece();
  ++n_events_;  // the last one of a piece that was not taken may have left traces
  begin_ = begin;
  exact_ = exact;
  scanner_ = Scanner(begin, end);
  scanner_.space();
  while (!scanner_.ended()) {
    event();
    scanner_.space();
    if (scanner_.ended()) {
      break;
    }
    scanner_.expect(',');
    scanner_.space();
    if (scanner_.ended()) {
      throw NotTaken{};
    }
  }
  return static_cast<int64_t>(columns.kind.size());
}

void Events::start_piece() {
  columns.clear();
  if (args.size() > kMostColumns) {
    args.clear();
    for (auto& memory : memories_) {
      memory.column.fill(-1);
    }
  }
  for (auto& column : args) {
    column.events.clear();
    column.values.clear();
  }
}

void Events::event() {
  Event event;
  scanner_.expect('{');
  scanner_.space();
  if (scanner_.peek() == '}') {
    scanner_.next();
  } else {
    do {
      field(event);
      const char c = scanner_.next();
      if (c == '}') {
        break;
      }
      if (c != ',') {
        throw NotTaken{};
      }
    } while (true);
  }
  add_event(event);
}

void Events::field(Event& event) {
  const std::string_view key = scanner_.text();
  const Field field = field_of(key);
  const int32_t other = field == kOther ? keys.number(key) : -1;
  scanner_.expect(':');
  if (field != kOther) {
    const uint32_t bit = 1U << field;
    if ((event.seen & bit) != 0) {
      throw NotTaken{};
    }
    event.seen |= bit;
  }
  switch (field) {
    case kPh:
      event.phase = optional_text();
      break;
    case kCat:
      scanner_.space();
      if (last_category_ < 0 || !texts.is_plain(last_category_) || !scanner_.take_quoted(texts.view(last_category_))) {
        last_category_ = optional_text();
      }
      event.category = last_category_;
      break;
    case kName:
      event.name = optional_text();
      break;
    case kPid:
      event.pid = id();
      break;
    case kTid:
      event.tid = id();
      break;
    case kTs:
      event.start = time();
      break;
    case kDur:
      event.duration = time();
      break;
    case kId:
      event.id = id();
      break;
    case kScope:
      event.scope = optional_text();
      break;
    case kBp:
      scanner_.value();
      break;
    case kArgs:
      arguments(event);
      break;
    case kOther:
      add_arg(other, arg(other));
      break;
  }
}

// Args that are no object are kept under the key "args"; null is none.
void Events::arguments(Event& event) {
  scanner_.space();
  if (scanner_.take("null")) {
    return;
  }
  if (scanner_.peek() != '{') {
    const int32_t own = keys.number("args");
    add_arg(own, arg(own));
    return;
  }
  scanner_.next();
  scanner_.space();
  if (scanner_.peek() == '}') {
    scanner_.next();
    return;
  }
  int32_t* guess = &first_key(event.category);
  while (true) {
    const int32_t name = key(*guess);
    scanner_.expect(':');
    add_arg(name, arg(name));
    guess = &memory(name).next;
    const char c = scanner_.next();
    if (c == '}') {
      return;
    }
    if (c != ',') {
      throw NotTaken{};
    }
  }
}

// The key of an arg: most often the one that stood in this place the last time.
int32_t Events::key(int32_t& guess) {
  scanner_.space();
  if (guess < 0 || !keys.is_plain(guess) || !scanner_.take_quoted(keys.view(guess))) {
    guess = keys.number(scanner_.text());
  }
  return guess;
}

Events::KeyMemory& Events::memory(int32_t key) {
  if (static_cast<size_t>(key) >= memories_.size()) {
    memories_.resize(static_cast<size_t>(key) + 1);
  }
  return memories_[static_cast<size_t>(key)];
}

int32_t& Events::first_key(int32_t category) {
  if (category < 0) {
    return no_category_key_;
  }
  if (static_cast<size_t>(category) >= first_keys_.size()) {
    first_keys_.resize(static_cast<size_t>(category) + 1, -1);
  }
  return first_keys_[static_cast<size_t>(category)];
}

int32_t Events::optional_text() {
  scanner_.space();
  if (scanner_.take("null")) {
    return -1;
  }
  return texts.number(scanner_.text());
}

Value Events::id() {
  scanner_.space();
  if (scanner_.take("null")) {
    return {};
  }
  if (scanner_.peek() == '"') {
    return {kText, texts.number(scanner_.text())};
  }
  const Value found = number_of(scanner_.number());
  if (found.kind != kInt) {
    throw NotTaken{};
  }
  return found;
}

Value Events::number_of(const Number& number) {
  if (!number.whole) {
    Value found{kFloat, 0};
    const double value = float_of(number);
    std::memcpy(&found.number, &value, sizeof value);
    return found;
  }
  if (number.whole_end - number.whole_begin <= 18) {
    int64_t value = 0;
    for (const char* at = number.whole_begin; at != number.whole_end; ++at) {
      value = value * 10 + (*at - '0');
    }
    return {kInt, number.negative ? -value : value};
  }
  int64_t value = 0;
  if (std::from_chars(number.begin, number.end, value).ec == std::errc()) {
    return {kInt, value};
  }
  return {kRaw, raws.number(number.text())};
}

Value Events::arg(int32_t key) {
  scanner_.space();
  switch (scanner_.peek()) {
    case '"':
      return text_under(memory(key));
    case '[':
    case '{':
      return raw_under(memory(key));
    case 't':
    case 'f':
    case 'n':
      if (scanner_.take("true")) {
        return {kBool, 1};
      }
      if (scanner_.take("false")) {
        return {kBool, 0};
      }
      if (scanner_.take("null")) {
        return {};
      }
      throw NotTaken{};
    default:
      return number_of(scanner_.number());
  }
}

Value Events::text_under(KeyMemory& memory) {
  if (memory.text < 0 || !texts.is_plain(memory.text) || !scanner_.take_quoted(texts.view(memory.text))) {
    memory.text = texts.number(scanner_.text());
  }
  return {kText, memory.text};
}

// A list or an object ends where its bracket closes: what begins like the last one is that one.
Value Events::raw_under(KeyMemory& memory) {
  if (memory.raw < 0 || !scanner_.take(raws.view(memory.raw))) {
    memory.raw = raws.number(scanner_.value());
  }
  return {kRaw, memory.raw};
}

Time Events::time() {
  scanner_.space();
  const char first = scanner_.peek();
  if (first == '-' || (first >= '0' && first <= '9')) {
    const Number number = scanner_.number();
    return exact_ || number.whole || says_nanoseconds(number) ? time_of(number, begin_) : time_of_double(number);
  }
  const std::string_view text = scanner_.value();
  Time time;
  if (first == '"') {
    if (text.find('\\') != std::string_view::npos) {
      throw NotTaken{};
    }
    time.state = kOdd;
    time.begin = text.data() - begin_;
    time.end = time.begin + static_cast<int64_t>(text.size());
  }
  return time;
}

Time Events::time_of_double(const Number& number) {
  Time time;
  const double us = float_of(number);
  if (!(std::fabs(us) < static_cast<double>(kNearUs))) {
    columns.inexact = true;
    return time;
  }
  const double whole = std::floor(us);
  time.state = kSound;
  time.ns = static_cast<int64_t>(whole) * 1000 + static_cast<int64_t>(std::rint((us - whole) * 1000));
  return time;
}

int32_t Events::kind_of(int32_t phase, int32_t category) {
  const uint64_t pair = static_cast<uint64_t>(static_cast<uint32_t>(phase)) << 32 | static_cast<uint32_t>(category);
  const auto [found, added] = kind_numbers_.try_emplace(pair, static_cast<int32_t>(kinds.size()));
  if (added) {
    kinds.push_back({phase, category});
  }
  return found->second;
}

int32_t Events::track_of(const Value& pid, const Value& tid) {
  const Track track{pid.kind, tid.kind, pid.number, tid.number};
  const auto [found, added] = track_numbers_.try_emplace(track, static_cast<int32_t>(tracks.size()));
  if (added) {
    tracks.push_back(track);
  }
  return found->second;
}

void Events::add_event(const Event& event) {
  const auto at = static_cast<int32_t>(columns.kind.size());
  columns.kind.push_back(kind_of(event.phase, event.category));
  columns.track.push_back(track_of(event.pid, event.tid));
  columns.name.push_back(event.name);
  columns.scope.push_back(event.scope);
  columns.id_kind.push_back(event.id.kind);
  columns.id.push_back(event.id.number);
  columns.start_ns.push_back(event.start.ns);
  columns.start_state.push_back(event.start.state);
  columns.duration_ns.push_back(event.duration.ns);
  columns.duration_state.push_back(event.duration.state);
  if (event.start.state == kOdd) {
    columns.odd.push_back({at, 0, event.start.begin, event.start.end});
  }
  if (event.duration.state == kOdd) {
    columns.odd.push_back({at, 1, event.duration.begin, event.duration.end});
  }
  ++n_events_;
}

// Adds a value of the event that is being read. Keys that are there twice are counted in Python.
void Events::add_arg(int32_t key, const Value& value) {
  KeyMemory& known = memory(key);
  if (known.event == n_events_) {
    throw NotTaken{};
  }
  known.event = n_events_;
  int32_t& place = known.column[static_cast<size_t>(value.kind)];
  if (place < 0) {
    place = static_cast<int32_t>(args.size());
    args.push_back({key, value.kind, {}, {}});
  }
  ArgColumn& column = args[static_cast<size_t>(place)];
  column.events.push_back(static_cast<int32_t>(columns.kind.size()));
  column.values.push_back(value.number);
}

}  // namespace devprof::json
