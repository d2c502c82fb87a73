#include <cmath>
#include <cstring>

#include "chunk.h"
#include "columns.h"
#include "numbers.h"

namespace devprof {

namespace {

constexpr int64_t kPunctuation = 64;  // more than all fixed texts of an event and its arrow

enum class Put { kDone, kNoRoom, kRefused };

bool is_valid(const Chunk& chunk) {
  const int64_t m = chunk.events;
  if (m < 0 || chunk.fields < 0 || (chunk.fields > 0 && chunk.field == nullptr)) return false;
  return holds(chunk.type, m, sizeof(uint8_t)) && holds(chunk.name, m, sizeof(int32_t)) &&
         holds(chunk.track, m, sizeof(int64_t)) && holds(chunk.since_ns, m, sizeof(uint64_t)) &&
         holds(chunk.lasted_ns, m, sizeof(uint64_t)) && holds_or_is_empty(chunk.arrow, m, sizeof(uint8_t)) &&
         holds_or_is_empty(chunk.arrow_number, m, sizeof(int64_t)) &&
         (chunk.arrow.bytes == 0) == (chunk.arrow_number.bytes == 0) &&
         holds_or_is_empty(chunk.kept, m, sizeof(uint8_t)) && holds(chunk.shape, kTypes, sizeof(uint8_t)) &&
         is_table(chunk.heads) && is_table(chunk.arrow_heads) && is_table(chunk.arrow_tails) &&
         is_table(chunk.tracks) && is_table(chunk.quoted) && is_table(chunk.verbatim) && is_table(chunk.keys);
}

bool is_valid(const Field& field, int64_t events) {
  const int64_t bytes = item_bytes(field.kind);
  const int64_t width = field.kind == kIntList ? field.width : 1;
  if (bytes == 0 || width < 0 || (width > 0 && events > kMostBytes / width)) return false;
  return holds(field.values, events * width, bytes) && holds_or_is_empty(field.present, events, sizeof(uint8_t));
}

// Writes one chunk. Between two texts there is always room for all numbers and fixed texts of a whole event, so that only
// texts have to ask for room.
class Writer {
 public:
  Writer(const Chunk& chunk, char* out, int64_t capacity) : chunk_(chunk), at_(out), end_(out + capacity) {}

  // What may be written without asking; a Refusal where a field is not as the chunk needs it.
  int64_t prepare() {
    room_ = kPunctuation + 3 * kMostOfTime + kMostOfInt;
    for (int64_t i = 0; i < chunk_.fields; ++i) {
      const Field& field = chunk_.field[i];
      if (!is_valid(field, chunk_.events)) return kBadColumn;
      const int64_t numbers = field.kind == kIntList ? field.width : 1;
      if (numbers > (kMostBytes - room_) / (kMostOfDouble + 1)) return kBadColumn;
      room_ += numbers * (kMostOfDouble + 1) + 4;
    }
    return 0;
  }

  char* at() const { return at_; }
  int64_t refusal() const { return refusal_; }

  Put event(int64_t i, bool is_first) {
    if (end_ - at_ < room_) return Put::kNoRoom;
    if (!is_first) fixed(",\n");
    const uint8_t type = as<uint8_t>(chunk_.type)[i];
    const uint8_t shape = as<uint8_t>(chunk_.shape)[type];
    const int64_t track = as<int64_t>(chunk_.track)[i];
    const uint64_t since_ns = as<uint64_t>(chunk_.since_ns)[i];
    Put put = text(chunk_.heads, type);
    if (put == Put::kDone) put = text(chunk_.quoted, as<int32_t>(chunk_.name)[i]);
    if (put != Put::kDone) return put;
    put = place(track, since_ns);
    if (put != Put::kDone) return put;
    if (shape == kSlice) {
      fixed(",\"dur\":");
      at_ = put_time(at_, as<uint64_t>(chunk_.lasted_ns)[i]);
    }
    put = args(i, shape == kCounter);
    if (put != Put::kDone) return put;
    *at_++ = '}';
    const uint8_t arrow = chunk_.arrow.bytes == 0 ? 0 : as<uint8_t>(chunk_.arrow)[i];
    return arrow == 0 ? Put::kDone : this->arrow(i, arrow, track, since_ns);
  }

 private:
  template <size_t n>
  void fixed(const char (&text)[n]) {
    std::memcpy(at_, text, n - 1);
    at_ += n - 1;
  }

  Put refuse(int64_t refusal) {
    refusal_ = refusal;
    return Put::kRefused;
  }

  Put text(const Texts& texts, int64_t number) {
    const int64_t count = texts.offsets.bytes / static_cast<int64_t>(sizeof(int64_t)) - 1;
    if (number < 0 || number >= count) return refuse(kBadNumber);
    const int64_t* const offsets = as<int64_t>(texts.offsets);
    const int64_t from = offsets[number], to = offsets[number + 1];
    if (from < 0 || to < from || to > texts.bytes.bytes) return refuse(kBadColumn);
    const int64_t size = to - from;
    if (size > end_ - at_ - room_) return Put::kNoRoom;
    if (size > 0) std::memcpy(at_, as<char>(texts.bytes) + from, static_cast<size_t>(size));
    at_ += size;
    return Put::kDone;
  }

  Put place(int64_t track, uint64_t since_ns) {
    *at_++ = ',';
    const Put put = text(chunk_.tracks, track);
    if (put != Put::kDone) return put;
    fixed(",\"ts\":");
    at_ = put_time(at_, since_ns);
    return Put::kDone;
  }

  Put args(int64_t i, bool even_none) {
    bool open = false;
    for (const Field* field = chunk_.field; field != chunk_.field + chunk_.fields; ++field) {
      if (field->present.bytes != 0 && as<uint8_t>(field->present)[i] == 0) continue;
      if (open) {
        *at_++ = ',';
      } else {
        fixed(",\"args\":{");
        open = true;
      }
      Put put = text(chunk_.keys, field->key);
      if (put == Put::kDone) put = value(*field, i);
      if (put != Put::kDone) return put;
    }
    if (!open && !even_none) return Put::kDone;
    if (!open) fixed(",\"args\":{");
    *at_++ = '}';
    return Put::kDone;
  }

  Put value(const Field& field, int64_t i) {
    switch (field.kind) {
      case kInt:
        at_ = put_int(at_, as<int64_t>(field.values)[i]);
        return Put::kDone;
      case kFloat: {
        const double number = as<double>(field.values)[i];
        if (!std::isfinite(number)) return refuse(kNotFinite);
        at_ = put_double(at_, number);
        return Put::kDone;
      }
      case kBool:
        if (as<uint8_t>(field.values)[i] != 0) {
          fixed("true");
        } else {
          fixed("false");
        }
        return Put::kDone;
      case kString:
        return text(chunk_.quoted, as<int32_t>(field.values)[i]);
      case kJson:
        return text(chunk_.verbatim, as<int32_t>(field.values)[i]);
      default:
        list(as<int64_t>(field.values) + i * field.width, field.width);
        return Put::kDone;
    }
  }

  void list(const int64_t* numbers, int64_t width) {
    *at_++ = '[';
    for (int64_t k = 0; k < width; ++k) {
      if (k > 0) *at_++ = ',';
      at_ = put_int(at_, numbers[k]);
    }
    *at_++ = ']';
  }

  Put arrow(int64_t i, uint8_t kind, int64_t track, uint64_t since_ns) {
    Put put = text(chunk_.arrow_heads, kind);
    if (put != Put::kDone) return put;
    at_ = put_int(at_, as<int64_t>(chunk_.arrow_number)[i]);
    put = place(track, since_ns);
    return put == Put::kDone ? text(chunk_.arrow_tails, kind) : put;
  }

  const Chunk& chunk_;
  char* at_;
  char* const end_;
  int64_t room_ = 0;
  int64_t refusal_ = 0;
};

}  // namespace

int64_t encode(const Chunk& chunk, int64_t first, char* out, int64_t capacity, int64_t* written) {
  *written = 0;
  if (!is_valid(chunk) || first < 0 || first > chunk.events || capacity < 0 || out == nullptr) return kBadColumn;
  Writer writer(chunk, out, capacity);
  if (const int64_t refusal = writer.prepare(); refusal != 0) return refusal;
  const uint8_t* const kept = chunk.kept.bytes == 0 ? nullptr : as<uint8_t>(chunk.kept);
  int64_t i = first;
  for (; i < chunk.events; ++i) {
    if (kept != nullptr && kept[i] == 0) continue;
    const Put put = writer.event(i, *written == 0);
    if (put == Put::kRefused) return writer.refusal();
    if (put == Put::kNoRoom) break;
    *written = writer.at() - out;
  }
  return i - first;
}

}  // namespace devprof
