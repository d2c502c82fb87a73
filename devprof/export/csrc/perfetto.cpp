#include "perfetto.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "columns.h"
#include "known.h"
#include "lists.h"
#include "numbers.h"
#include "protobuf.h"

namespace devprof {

namespace {

constexpr int64_t kEventRoom = 256;    // all of an event but its items and what stands once on its track
constexpr int64_t kHeadRoom = 160;     // what begins a track
constexpr int64_t kItemRoom = 48;      // an arg with one value, or one number of a list
constexpr int64_t kInternedRoom = 32;  // what stands around a text
constexpr uint64_t kFirstSequence = 3;  // the clock, what has no track of its own and the tracks' names are in those before
constexpr uint64_t kRealtime = 1, kClock = 64;
constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kSliceBegins = 1, kSliceEnds = 2, kInstantEvent = 3;  // TrackEvent.Type

// Fields, by message; protos/perfetto/trace/trace_packet.proto and its neighbours.
constexpr uint64_t kPacket = 1;  // of Trace
constexpr uint64_t kSnapshot = 6, kTime = 8, kSequence = 10, kEvent = 11, kInterned = 12, kFlags = 13, kClockId = 58,
                   kDefaults = 59, kFirstPacket = 87;  // of TracePacket
constexpr uint64_t kDefaultClock = 58, kEventDefaults = 11, kDefaultTrack = 11;
constexpr uint64_t kClocks = 1, kPrimaryClock = 2, kClockNumber = 1, kClockTime = 2, kIncremental = 3;
constexpr uint64_t kCategory = 3, kAnnotation = 4, kType = 9, kName = 10, kFlow = 47, kLastOfFlow = 48;  // of TrackEvent
constexpr uint64_t kKey = 1, kBoolValue = 2, kIntValue = 4, kDoubleValue = 5, kTextValue = 6, kTextNumber = 17;  // of DebugAnnotation
constexpr uint64_t kCategories = 1, kNames = 2, kKeys = 3, kValues = 29, kNumber = 1, kText = 2;  // of InternedData

// The values of a `Sparse`, for events that mostly come in ascending order.
template <typename Index>
class Cursor {
 public:
  Cursor(const Column& events, int64_t index_bytes)
      : events_(as<Index>(events)), size_(events.bytes / index_bytes) {}

  // Where an event's value stands, -1: it has none.
  int64_t find(int64_t event) {
    if (at_ < size_ && events_[at_] < event) {
      ++at_;
      if (at_ < size_ && events_[at_] < event) at_ = std::lower_bound(events_ + at_, events_ + size_, event) - events_;
    } else if (at_ > 0 && events_[at_ - 1] >= event) {
      at_ = std::lower_bound(events_, events_ + at_, event) - events_;
    }
    return at_ < size_ && events_[at_] == event ? at_ : -1;
  }

 private:
  const Index* events_;
  int64_t size_;
  int64_t at_ = 0;
};

// A message whose bytes are known, in another one.
uint8_t* put_message(uint8_t* at, uint64_t field, const uint8_t* begin, const uint8_t* end) {
  at = put_varint(put_varint(at, tag(field, kBytes)), static_cast<uint64_t>(end - begin));
  return put_bytes(at, begin, end - begin);
}

struct Track {
  bool begun = false;
  uint64_t last = 0;           // the clock's time; it counts from one packet to the next
  std::vector<uint64_t> open;  // ends of the slices that are open, the innermost last
  Bits categories, keys;       // what stands in the file already
};

}  // namespace

class PerfettoWriter::Body {
 public:
  explicit Body(const PerfettoTrace& trace)
      : trace_(trace),
        lanes_(trace.lanes.events, sizeof(int64_t)),
        ends_(trace.end_event, sizeof(int32_t)),
        starts_(trace.start_event, sizeof(int32_t)) {
    if (check() != 0) return;
    tracks_.resize(static_cast<size_t>(trace.tracks));
    for (int64_t i = 0; i < trace.items; ++i) {
      const Item& item = trace.item[i];
      items_.push_back({item, Cursor<int64_t>(item.column.events, sizeof(int64_t))});
      room_ += kItemRoom * (item.kind == kIntList ? item.width + 1 : 1);
    }
  }

  int64_t check() const {
    const PerfettoTrace& t = trace_;
    const int64_t n = t.events, i64 = sizeof(int64_t), i32 = sizeof(int32_t);
    if (n < 0 || t.rows < 0 || t.tracks < 0 || t.strings < 0 || t.items < 0) return kBadColumn;
    if (t.items > 0 && t.item == nullptr) return kBadColumn;
    const bool events = holds(t.type, n, 1) && holds(t.name, n, i32) && holds(t.row, n, i32) &&
                        holds(t.start_ns, n, i64) && holds(t.end_ns, n, i64) && holds(t.id, n, i64) &&
                        holds(t.linked, n, i64);
    const int64_t ends = t.end_event.bytes / i32, starts = t.start_event.bytes / i32, lanes = t.lanes.events.bytes / i64;
    const bool arrows = holds(t.end_event, ends, i32) && holds(t.end_number, ends, i32) &&
                        holds(t.start_event, starts, i32) && holds(t.start_first, starts, i32) &&
                        holds(t.start_arrows, starts, i32);
    const bool lane = holds(t.lanes.events, lanes, i64) && holds(t.lanes.values, lanes, i64);
    if (!events || !holds(t.first, t.rows, i64) || !holds(t.on_device, t.rows, 1) || !arrows || !lane || !holds(t.shape, kTypes, 1) || !is_table(t.keys) ||
        !is_table(t.categories) || texts(t.categories) < kTypes) {
      return kBadColumn;
    }
    for (int d = 0; d < kDerived; ++d) {
      if (t.derived_key[d] < 0 || t.derived_key[d] >= texts(t.keys) || t.derived_item[d] >= t.items) return kBadNumber;
    }
    for (int64_t i = 0; i < t.items; ++i) {
      if (const int64_t refusal = check(t.item[i]); refusal != 0) return refusal;
    }
    return 0;
  }

  int64_t write(const Block& block) {
    out_.clear();
    if (!is_valid(block)) return kBadColumn;
    const auto* const events = as<int64_t>(block.events);
    const auto* const skipped = as<uint8_t>(block.skipped);
    for (int64_t i = 0; i < block.count; ++i) {
      if (block.skipped.bytes != 0 && skipped[i] != 0) continue;
      const int64_t event = block.events.bytes != 0 ? events[i] : block.begin + i;
      if (event < 0 || event >= trace_.events) return kBadNumber;
      if (const int64_t refusal = put(event, block); refusal != 0) return refusal;
    }
    return 0;
  }

  void finish() {
    out_.clear();
    for (size_t i = 0; i < tracks_.size(); ++i) {
      for (; !tracks_[i].open.empty(); tracks_[i].open.pop_back()) put_end(i, tracks_[i].open.back());
    }
  }

  const Octets& out() const { return out_; }

 private:
  struct Arg {
    Item item;
    Cursor<int64_t> cursor;
    int64_t at = -1;  // of the current event
  };

  static int64_t texts(const Texts& table) { return table.offsets.bytes / static_cast<int64_t>(sizeof(int64_t)) - 1; }

  int64_t check(const Item& item) const {
    const int64_t bytes = item_bytes(item.kind), width = item.kind == kIntList ? item.width : 1;
    const int64_t size = item.column.events.bytes / static_cast<int64_t>(sizeof(int64_t));
    if (bytes == 0 || width < 0 || width > kMostBytes / kItemRoom / (trace_.items + 1)) return kBadColumn;
    if (width > 0 && size > kMostBytes / width) return kBadColumn;
    if (!holds(item.column.events, size, sizeof(int64_t)) || !holds(item.column.values, size * width, bytes)) {
      return kBadColumn;
    }
    if (item.said.bytes != 0 && (item.kind != kInt || !holds(item.said, trace_.rows, sizeof(int64_t)))) return kBadColumn;
    if (item.key < 0 || item.key >= texts(trace_.keys)) return kBadNumber;
    return 0;
  }

  bool is_valid(const Block& block) const {
    if (block.count < 0 || block.begin < 0) return false;
    if (block.events.bytes == 0 && (block.begin > trace_.events || block.count > trace_.events - block.begin)) return false;
    return holds_or_is_empty(block.events, block.count, sizeof(int64_t)) &&
           holds_or_is_empty(block.skipped, block.count, 1) && holds(block.number, trace_.strings, sizeof(int32_t)) &&
           is_table(block.texts);
  }

  uint64_t since(int64_t time_ns) const { return static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(trace_.base_ns); }

  int64_t put(int64_t event, const Block& block) {
    const int32_t row = as<int32_t>(trace_.row)[event];
    if (row < 0 || row >= trace_.rows) return kBadNumber;
    const int64_t at = lanes_.find(event), lane = at < 0 ? 0 : as<int64_t>(trace_.lanes.values)[at];
    const int64_t first = as<int64_t>(trace_.first)[row];
    if (first < 0 || first >= trace_.tracks || lane < 0 || lane >= trace_.tracks - first) return kBadNumber;
    const int64_t number = first + lane;
    Track& track = tracks_[static_cast<size_t>(number)];
    if (!track.begun) begin(number, track);
    const uint8_t type = as<uint8_t>(trace_.type)[event], shape = as<uint8_t>(trace_.shape)[type];
    const int64_t start_ns = as<int64_t>(trace_.start_ns)[event];
    const uint64_t start = since(start_ns);
    for (; !track.open.empty() && track.open.back() <= start; track.open.pop_back()) {
      put_end(static_cast<size_t>(number), track.open.back());
    }
    if (const int64_t refusal = describe(event, row, number, type, shape, block); refusal != 0) return refusal;
    put_packet(static_cast<size_t>(number), start, event_.data(), event_.size());
    if (shape & kIsSlice) track.open.push_back(since(std::max(start_ns, as<int64_t>(trace_.end_ns)[event])));
    return 0;
  }

  // Makes the event, and what must be known on its track before.
  int64_t describe(int64_t event, int32_t row, int64_t number, uint8_t type, uint8_t shape, const Block& block) {
    event_.clear();
    interned_.clear();
    uint8_t* at = event_.room(kEventRoom + room_);
    at = put_number(at, kType, shape & kIsSlice ? kSliceBegins : kInstantEvent);
    Track& track = tracks_[static_cast<size_t>(number)];
    if (track.categories.add(type) && !intern(kCategories, type + 1, trace_.categories, type)) return kBadColumn;
    at = put_number(at, kCategory, static_cast<uint64_t>(type) + 1);
    const int32_t name = as<int32_t>(trace_.name)[event];
    if (const int64_t refusal = know(number, kNames, name, block); refusal != 0) return refusal;
    at = put_number(at, kName, static_cast<uint64_t>(name) + 1);
    if (const int64_t start = starts_.find(event); start >= 0) {
      const int64_t first = as<int32_t>(trace_.start_first)[start], arrows = as<int32_t>(trace_.start_arrows)[start];
      event_.filled_to(at);
      at = event_.room(kEventRoom + room_ + (arrows > 0 ? arrows : 0) * kMostOfVarint);
      for (int64_t i = 0; i < arrows; ++i) at = put_fixed64(at, kFlow, static_cast<uint64_t>(first + i));
    }
    if (const int64_t end = ends_.find(event); end >= 0) {
      at = put_fixed64(at, kLastOfFlow, static_cast<uint64_t>(as<int32_t>(trace_.end_number)[end]));
    }
    const bool on_device = as<uint8_t>(trace_.on_device)[row] != 0;
    for (Arg& arg : items_) {
      arg.at = arg.cursor.find(event);
      if (on_device && arg.at >= 0 && is_said(arg.item, arg.at, row)) arg.at = -1;
    }
    at = put_derived(at, track, event, shape);
    for (const Arg& arg : items_) {
      if (arg.at < 0) continue;
      if (!know_key(track, arg.item.key)) return kBadColumn;
      if (arg.item.kind == kString || arg.item.kind == kJson) {
        const int32_t text = as<int32_t>(arg.item.column.values)[arg.at];
        if (const int64_t refusal = know(number, kValues, text, block); refusal != 0) return refusal;
      }
      at = put_item(at, number, arg);
    }
    event_.filled_to(at);
    return 0;
  }

  uint8_t* put_derived(uint8_t* at, Track& track, int64_t event, uint8_t shape) {
    const int64_t id = as<int64_t>(trace_.id)[event];
    const int64_t op = shape & kHasOwnId ? id : shape & kHasNoOp ? 0 : as<int64_t>(trace_.linked)[event];
    if (op != 0) at = put_derived(at, track, kExternalId, op);
    if ((shape & kHasLaunch) && id != 0) at = put_derived(at, track, kCorrelation, id);
    return at;
  }

  uint8_t* put_derived(uint8_t* at, Track& track, Derived which, int64_t value) {
    const int64_t item = trace_.derived_item[which];
    if (item >= 0 && items_[static_cast<size_t>(item)].at >= 0) return at;
    if (!know_key(track, trace_.derived_key[which])) return at;
    return put_integer(at, trace_.derived_key[which], value);
  }

  static bool is_said(const Item& item, int64_t at, int32_t row) {
    return item.said.bytes != 0 && as<int64_t>(item.column.values)[at] == as<int64_t>(item.said)[row];
  }

  static uint8_t* put_head(uint8_t* at, int64_t key, int64_t value_bytes) {
    const auto iid = static_cast<uint64_t>(key) + 1;
    at = put_varint(at, tag(kAnnotation, kBytes));
    at = put_varint(at, static_cast<uint64_t>(1 + varint_bytes(iid) + value_bytes));
    return put_number(at, kKey, iid);
  }

  static uint8_t* put_integer(uint8_t* at, int64_t key, int64_t value) {
    at = put_head(at, key, 1 + varint_bytes(static_cast<uint64_t>(value)));
    return put_number(at, kIntValue, static_cast<uint64_t>(value));
  }

  static uint8_t* put_text_number(uint8_t* at, int64_t key, int64_t text) {
    const auto iid = static_cast<uint64_t>(text) + 1;
    return put_number(put_head(at, key, 2 + varint_bytes(iid)), kTextNumber, iid);
  }

  uint8_t* put_item(uint8_t* at, int64_t track, const Arg& arg) {
    const Column& values = arg.item.column.values;
    switch (arg.item.kind) {
      case kInt:
        return put_integer(at, arg.item.key, as<int64_t>(values)[arg.at]);
      case kFloat: {
        uint64_t bits = 0;
        std::memcpy(&bits, as<double>(values) + arg.at, sizeof bits);
        return put_fixed64(put_head(at, arg.item.key, 9), kDoubleValue, bits);
      }
      case kBool:
        return put_number(put_head(at, arg.item.key, 2), kBoolValue, as<uint8_t>(values)[arg.at] != 0);
      case kString:
      case kJson:
        return put_text_number(at, arg.item.key, as<int32_t>(values)[arg.at]);
      default:
        return put_list(at, track, arg);
    }
  }

  // A list as text: by its number where it comes again.
  uint8_t* put_list(uint8_t* at, int64_t track, const Arg& arg) {
    const int64_t key = arg.item.key, width = arg.item.width;
    const int64_t* const numbers = as<int64_t>(arg.item.column.values) + arg.at * width;
    const int64_t again = lists_.number(numbers, width);
    if (again < 0) {
      const auto size = static_cast<uint64_t>(list_text(numbers, width));
      at = put_head(at, key, static_cast<int64_t>(size) + 1 + varint_bytes(size));
      at = put_varint(put_varint(at, tag(kTextValue, kBytes)), size);
      return put_bytes(at, list_text_.data(), static_cast<int64_t>(size));
    }
    const int64_t text = trace_.strings + again;
    if (known_.add(on_track(track, kValues, text))) {
      intern(kValues, static_cast<uint64_t>(text) + 1, list_text_.data(), list_text(numbers, width));
    }
    return put_text_number(at, key, text);
  }

  // Makes `list_text_`, and returns its size.
  int64_t list_text(const int64_t* numbers, int64_t width) {
    list_text_.clear();
    auto* const begin = reinterpret_cast<char*>(list_text_.room(width * (kMostOfInt + 2) + 2));
    char* at = begin;
    *at++ = '[';
    for (int64_t i = 0; i < width; ++i) {
      if (i > 0) {
        *at++ = ',';
        *at++ = ' ';
      }
      at = devprof::put_int(at, numbers[i]);
    }
    *at++ = ']';
    return at - begin;
  }

  // Texts: each once on a track.

  bool know_key(Track& track, int64_t key) {
    return !track.keys.add(static_cast<size_t>(key)) || intern(kKeys, static_cast<uint64_t>(key) + 1, trace_.keys, key);
  }

  int64_t know(int64_t track, uint64_t kind, int32_t text, const Block& block) {
    if (text < 0 || text >= trace_.strings) return kBadNumber;
    if (!known_.add(on_track(track, kind, text))) return 0;
    const int32_t number = as<int32_t>(block.number)[text];
    if (!intern(kind, static_cast<uint64_t>(text) + 1, block.texts, number)) return kBadNumber;
    return 0;
  }

  bool intern(uint64_t kind, uint64_t iid, const Texts& table, int64_t number) {
    if (number < 0 || number >= texts(table)) return false;
    const int64_t from = as<int64_t>(table.offsets)[number], to = as<int64_t>(table.offsets)[number + 1];
    if (from < 0 || to < from || to > table.bytes.bytes) return false;
    intern(kind, iid, as<uint8_t>(table.bytes) + from, to - from);
    return true;
  }

  void intern(uint64_t kind, uint64_t iid, const uint8_t* text, int64_t text_bytes) {
    const auto size = static_cast<uint64_t>(text_bytes);
    uint8_t* at = interned_.room(text_bytes + kInternedRoom);
    at = put_varint(at, tag(kind, kBytes));
    at = put_varint(at, 2 + static_cast<uint64_t>(varint_bytes(iid) + varint_bytes(size)) + size);
    at = put_number(at, kNumber, iid);
    at = put_varint(put_varint(at, tag(kText, kBytes)), size);
    interned_.filled_to(put_bytes(at, text, text_bytes));
  }

  // A text on a track, as one number.
  static uint64_t on_track(int64_t track, uint64_t kind, int64_t text) {
    return static_cast<uint64_t>(track) << 33 | uint64_t{kind == kValues} << 32 | static_cast<uint32_t>(text);
  }

  // Packets.

  void begin(int64_t number, Track& track) {
    uint8_t head[kHeadRoom], inner[kHeadRoom], clock[kHeadRoom];
    track.begun = true;
    const uint64_t sequence = kFirstSequence + static_cast<uint64_t>(number);
    uint8_t* at = put_number(put_number(head, kSequence, sequence), kFlags, kStateCleared);
    at = put_number(at, kFirstPacket, 1);
    uint8_t* end = put_number(clock, kDefaultTrack, static_cast<uint64_t>(number) + 1);
    uint8_t* defaults = put_message(put_number(inner, kDefaultClock, kClock), kEventDefaults, clock, end);
    add(head, put_message(at, kDefaults, inner, defaults));
    end = put_number(put_number(clock, kClockNumber, kRealtime), kClockTime, static_cast<uint64_t>(trace_.base_ns));
    at = put_message(inner, kClocks, clock, end);
    end = put_number(put_number(put_number(clock, kClockNumber, kClock), kClockTime, 0), kIncremental, 1);
    at = put_number(put_message(at, kClocks, clock, end), kPrimaryClock, kRealtime);
    add(head, put_message(put_number(head, kSequence, sequence), kSnapshot, inner, at));
  }

  void add(const uint8_t* begin, const uint8_t* end) {
    out_.filled_to(put_message(out_.room(end - begin + kMostOfVarint + 1), kPacket, begin, end));
  }

  void put_end(size_t track, uint64_t time) {
    uint8_t event[2];
    interned_.clear();
    put_packet(track, time, event, put_number(event, kType, kSliceEnds) - event);
  }

  void put_packet(size_t number, uint64_t time, const uint8_t* event, int64_t size) {
    Track& track = tracks_[number];
    uint8_t head[64];
    uint8_t* end = put_time(head, track, time);
    end = put_number(end, kSequence, kFirstSequence + number);
    const int64_t texts = interned_.size();
    const int64_t texts_size = texts == 0 ? 0 : 1 + varint_bytes(static_cast<uint64_t>(texts)) + texts;
    const int64_t whole = end - head + texts_size + 1 + varint_bytes(static_cast<uint64_t>(size)) + size;
    uint8_t* at = out_.room(whole + kMostOfVarint + 1);
    at = put_varint(put_varint(at, tag(kPacket, kBytes)), static_cast<uint64_t>(whole));
    at = put_bytes(at, head, end - head);
    if (texts > 0) at = put_message(at, kInterned, interned_.data(), interned_.data() + texts);
    out_.filled_to(put_message(at, kEvent, event, event + size));
  }

  // The track's clock counts on from the last packet; a time before that is written as it is.
  uint8_t* put_time(uint8_t* at, Track& track, uint64_t time) const {
    if (time < track.last) {
      at = put_number(at, kTime, time + static_cast<uint64_t>(trace_.base_ns));
      return put_number(at, kClockId, kRealtime);
    }
    at = put_number(at, kTime, time - track.last);
    track.last = time;
    return at;
  }

  const PerfettoTrace& trace_;
  Cursor<int64_t> lanes_;
  Cursor<int32_t> ends_, starts_;
  std::vector<Arg> items_;
  int64_t room_ = 0;
  std::vector<Track> tracks_;
  Known known_;  // texts, by track
  Lists lists_;  // their numbers follow those of the texts
  Octets out_, event_, interned_, list_text_;
};

PerfettoWriter::PerfettoWriter(const PerfettoTrace& trace) : body_(std::make_unique<Body>(trace)) {}
PerfettoWriter::~PerfettoWriter() = default;
int64_t PerfettoWriter::check() const { return body_->check(); }
int64_t PerfettoWriter::write(const Block& block) { return body_->write(block); }
void PerfettoWriter::finish() { body_->finish(); }
const uint8_t* PerfettoWriter::data() const { return body_->out().data(); }
int64_t PerfettoWriter::size() const { return body_->out().size(); }

}  // namespace devprof
