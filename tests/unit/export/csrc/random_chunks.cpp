// Encodes random chunks, whole and damaged ones, under sanitizers. Every array has its exact size on the heap.
// Usage: random_chunks SEED CHUNKS. Prints how many chunks were written and refused; exits with 1 where text differs.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "chunk.h"
#include "numbers.h"
#include "random_columns.h"

namespace {

using devprof::Chunk;
using devprof::Column;
using devprof::Field;
using devprof::Texts;

double any_double() {
  for (;;) {
    const uint64_t bits = generator();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (below(3) == 0) value = static_cast<double>(any_int()) / std::pow(10.0, static_cast<double>(below(25)));
    if (std::isfinite(value)) return value;
  }
}

// A chunk and the memory that it points to.
struct Made : Memory {
  std::vector<Field> fields;
  Chunk chunk{};

  Field field(int64_t m, int64_t n_texts, int64_t n_keys) {
    Field made{below(6), below(n_keys), 1, {}, {}};
    switch (made.kind) {
      case devprof::kInt:
        made.values = column<int64_t>(m, any_int);
        break;
      case devprof::kIntList:
        made.width = below(8) == 0 ? below(80) : below(5);
        made.values = column<int64_t>(m * made.width, any_int);
        break;
      case devprof::kFloat:
        made.values = column<double>(m, any_double);
        break;
      case devprof::kBool:
        made.values = column<uint8_t>(m, [] { return below(3); });
        break;
      default:
        made.values = column<int32_t>(m, [&] { return below(n_texts); });
    }
    if (below(2) == 0) made.present = column<uint8_t>(m, [] { return below(2); });
    return made;
  }

  Made() {
    const int64_t m = below(40), n_texts = 1 + below(10), n_keys = 1 + below(4), n_tracks = 1 + below(5);
    chunk.events = m;
    chunk.type = column<uint8_t>(m, [] { return below(256); });
    chunk.name = column<int32_t>(m, [&] { return below(n_texts); });
    chunk.track = column<int64_t>(m, [&] { return below(n_tracks); });
    chunk.since_ns = column<uint64_t>(m, [] { return generator() >> below(64); });
    chunk.lasted_ns = column<uint64_t>(m, [] { return generator() >> below(64); });
    if (below(2) == 0) {
      chunk.arrow = column<uint8_t>(m, [] { return below(6); });
      chunk.arrow_number = column<int64_t>(m, any_int);
    }
    if (below(2) == 0) chunk.kept = column<uint8_t>(m, [] { return below(2); });
    chunk.shape = column<uint8_t>(256, [] { return below(3); });
    chunk.heads = texts(256);
    chunk.arrow_heads = texts(6);
    chunk.arrow_tails = texts(6);
    chunk.tracks = texts(n_tracks);
    chunk.quoted = texts(n_texts);
    chunk.verbatim = texts(n_texts);
    chunk.keys = texts(n_keys);
    const int64_t n_fields = below(6);
    for (int64_t i = 0; i < n_fields; ++i) fields.push_back(field(m, n_texts, n_keys));
    chunk.fields = n_fields;
    chunk.field = fields.data();
  }

  // Changes some bytes of what it points to, or makes one of its sizes smaller.
  void damage() {
    for (int64_t i = 1 + below(3); i > 0; --i) {
      const size_t which = static_cast<size_t>(below(static_cast<int64_t>(memory.size())));
      const int64_t bytes = sizes[which];
      if (bytes >= 8) {
        const int64_t value = any_int();
        std::memcpy(memory[which].get() + below(bytes / 8) * 8, &value, sizeof value);
      }
    }
    Column* const columns[] = {&chunk.type,          &chunk.name,           &chunk.track,        &chunk.since_ns,
                               &chunk.lasted_ns,     &chunk.arrow,          &chunk.arrow_number, &chunk.kept,
                               &chunk.shape,         &chunk.heads.bytes,    &chunk.heads.offsets, &chunk.tracks.offsets,
                               &chunk.quoted.bytes,  &chunk.quoted.offsets, &chunk.keys.bytes,   &chunk.keys.offsets};
    if (below(3) == 0) {
      Column& column = *columns[below(16)];
      column.bytes = column.bytes > 0 && below(4) > 0 ? below(column.bytes) : -below(10);
    }
    if (below(6) == 0) chunk.events = any_int();
    if (!fields.empty() && below(3) == 0) {
      Field& field = fields[static_cast<size_t>(below(chunk.fields))];
      (below(2) == 0 ? field.kind : below(2) == 0 ? field.key : field.width) = any_int();
    }
  }
};

// The text of a chunk, through a buffer of this size, which doubles where one event does not fit; or what was refused.
int64_t encoded(const Chunk& chunk, int64_t capacity, std::string* text) {
  int64_t first = 0;
  while (first < chunk.events) {
    const std::unique_ptr<char[]> out(new char[static_cast<size_t>(capacity)]);
    int64_t written = 0;
    const int64_t done = devprof::encode(chunk, first, out.get(), capacity, &written);
    if (done < 0) return done;
    if (done == 0) capacity *= 2;
    if (capacity > (1 << 24)) return -100;  // a list of a damaged width that is never there
    if (written > 0) {
      if (!text->empty()) *text += ",\n";
      text->append(out.get(), static_cast<size_t>(written));
    }
    first += done;
  }
  return 0;
}

bool reads_back() {
  const double value = any_double();
  const std::unique_ptr<char[]> out(new char[devprof::kMostOfDouble]);
  const std::string text(out.get(), devprof::put_double(out.get(), value));
  const double back = std::strtod(text.c_str(), nullptr);
  return std::memcmp(&back, &value, sizeof value) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  generator.seed(std::strtoull(argv[1], nullptr, 10));
  const int64_t chunks = std::strtoll(argv[2], nullptr, 10);
  int64_t refused = 0;
  for (int64_t i = 0; i < chunks; ++i) {
    Made made;
    std::string whole, pieces;
    if (encoded(made.chunk, 1 << 20, &whole) != 0 || encoded(made.chunk, 1 + below(2000), &pieces) != 0 ||
        whole != pieces || !reads_back()) {
      std::fprintf(stderr, "chunk %lld differs\n", static_cast<long long>(i));
      return 1;
    }
    made.damage();
    refused += encoded(made.chunk, 1 + below(2000), &pieces) < 0;
  }
  std::printf("%lld written, %lld refused\n", static_cast<long long>(chunks), static_cast<long long>(refused));
  return 0;
}
