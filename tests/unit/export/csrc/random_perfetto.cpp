// Writes random traces as Perfetto packets, whole and damaged ones, under sanitizers. Every array has its exact size on the heap.
// Usage: random_perfetto SEED TRACES. Prints how many were written and refused; exits with 1 where packets are not whole.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "perfetto.h"
#include "random_columns.h"

namespace {

using devprof::Block;
using devprof::Column;
using devprof::Item;
using devprof::PerfettoTrace;
using devprof::PerfettoWriter;
using devprof::Texts;

// A trace, a block of all its events, and the memory that they point to.
struct Made : Memory {
  std::vector<Item> items;
  PerfettoTrace trace{};
  Block block{};

  // Some of the events, ascending, and how many.
  template <typename Index>
  Column some(int64_t n, int64_t* count) {
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < n; ++i) {
      if (below(2) == 0) chosen.push_back(i);
    }
    size_t next = 0;
    *count = static_cast<int64_t>(chosen.size());
    return column<Index>(*count, [&] { return chosen[next++]; });
  }

  Item item(int64_t n, int64_t n_keys) {
    Item made{below(6), below(n_keys), 1, {}, {}};
    int64_t count = 0;
    made.column.events = some<int64_t>(n, &count);
    switch (made.kind) {
      case devprof::kInt:
        made.column.values = column<int64_t>(count, any_int);
        if (below(2) == 0) made.said = column<int64_t>(trace.rows, any_int);
        break;
      case devprof::kIntList:
        made.width = below(8) == 0 ? below(80) : below(3);
        made.column.values = column<int64_t>(count * made.width, [] { return below(4) > 0 ? below(3) : any_int(); });
        break;
      case devprof::kFloat:
        made.column.values = column<double>(count, any_int);
        break;
      case devprof::kBool:
        made.column.values = column<uint8_t>(count, [] { return below(3); });
        break;
      default:
        made.column.values = column<int32_t>(count, [&] { return below(trace.strings); });
    }
    return made;
  }

  Made() {
    const int64_t n = below(60), n_keys = 2 + below(4);
    trace.events = n;
    trace.rows = 1 + below(4);
    trace.tracks = trace.rows + 2;
    trace.strings = 1 + below(10);
    trace.base_ns = any_int();
    trace.type = column<uint8_t>(n, [] { return below(256); });
    trace.name = column<int32_t>(n, [&] { return below(trace.strings); });
    trace.row = column<int32_t>(n, [&] { return below(trace.rows); });
    trace.start_ns = column<int64_t>(n, any_int);
    trace.end_ns = column<int64_t>(n, any_int);
    trace.id = column<int64_t>(n, any_int);
    trace.linked = column<int64_t>(n, any_int);
    trace.shape = column<uint8_t>(256, [] { return below(16); });
    trace.first = column<int64_t>(trace.rows, [&] { return below(trace.rows); });
    trace.on_device = column<uint8_t>(trace.rows, [] { return below(2); });
    int64_t count = 0;
    trace.lanes.events = some<int64_t>(n, &count);
    trace.lanes.values = column<int64_t>(count, [] { return below(3); });
    trace.end_event = some<int32_t>(n, &count);
    trace.end_number = column<int32_t>(count, any_int);
    trace.start_event = some<int32_t>(n, &count);
    trace.start_first = column<int32_t>(count, any_int);
    trace.start_arrows = column<int32_t>(count, [] { return below(50); });
    trace.keys = texts(n_keys);
    trace.categories = texts(256);
    for (int64_t i = below(6); i > 0; --i) items.push_back(item(n, n_keys));
    trace.items = static_cast<int64_t>(items.size());
    trace.item = items.data();
    for (int d = 0; d < devprof::kDerived; ++d) {
      trace.derived_key[d] = below(n_keys);
      trace.derived_item[d] = below(trace.items + 1) - 1;
    }
    block.begin = 0;
    block.count = n;
    if (below(2) == 0) {
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
      std::shuffle(order.begin(), order.end(), generator);
      size_t next = 0;
      block.events = column<int64_t>(n, [&] { return order[next++]; });
    }
    if (below(2) == 0) block.skipped = column<uint8_t>(n, [] { return below(2); });
    int64_t number = 0;
    block.number = column<int32_t>(trace.strings, [&] { return number++; });
    block.texts = texts(trace.strings);
  }

  // Changes some values of what it points to, and perhaps a size. The numbers of arrows stay few, for each is written.
  void damage() {
    for (int64_t i = 1 + below(3); i > 0; --i) {
      const size_t which = static_cast<size_t>(below(static_cast<int64_t>(memory.size())));
      if (sizes[which] < 8 || memory[which].get() == trace.start_arrows.data) continue;
      const int64_t value = any_int();
      std::memcpy(memory[which].get() + below(sizes[which] / 8) * 8, &value, sizeof value);
    }
    Column* const columns[] = {&trace.type,   &trace.name,      &trace.row,       &trace.start_ns,     &trace.end_ns,
                               &trace.id,     &trace.shape,     &trace.first,     &trace.lanes.events, &trace.end_event,
                               &trace.linked, &trace.on_device, &trace.keys.bytes, &block.number,      &block.texts.bytes,
                               &block.events, &block.skipped,   &trace.start_first};
    if (below(3) == 0) {
      Column& column = *columns[below(std::size(columns))];
      column.bytes = column.bytes > 0 && below(4) > 0 ? below(column.bytes) : -below(10);
    }
    if (below(8) == 0) (below(2) == 0 ? trace.events : trace.rows) = any_int();
    if (below(8) == 0) (below(2) == 0 ? block.begin : block.count) = any_int();
    if (below(8) == 0) trace.derived_item[0] = any_int();
    if (!items.empty() && below(3) == 0) {
      Item& item = items[static_cast<size_t>(below(static_cast<int64_t>(items.size())))];
      (below(2) == 0 ? item.kind : below(2) == 0 ? item.key : item.width) = any_int();
    }
  }
};

// Whether bytes are whole packets, one after the other.
bool is_whole(const std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (bytes[at++] != 0x0A) return false;
    uint64_t size = 0;
    int shift = 0;
    uint8_t octet = 0x80;
    while (octet >= 0x80) {
      if (at == bytes.size() || shift > 35) return false;
      octet = static_cast<uint8_t>(bytes[at++]);
      size |= uint64_t{octet & 0x7Fu} << shift;
      shift += 7;
    }
    if (size > bytes.size() - at) return false;
    at += size;
  }
  return true;
}

// The packets of a trace, its block cut into pieces; or what was refused.
int64_t written(const Made& made, bool in_pieces, std::string* bytes) {
  PerfettoWriter writer(made.trace);
  if (const int64_t refusal = writer.check(); refusal != 0) return refusal;
  const auto add = [&] { bytes->append(reinterpret_cast<const char*>(writer.data()), static_cast<size_t>(writer.size())); };
  Block piece = made.block;
  for (int64_t low = 0; in_pieces && low < made.block.count; low += 7) {
    piece.begin = made.block.begin + low;
    piece.count = std::min<int64_t>(7, made.block.count - low);
    if (made.block.events.bytes != 0) piece.events = {static_cast<const char*>(made.block.events.data) + 8 * low, 8 * piece.count};
    if (made.block.skipped.bytes != 0) piece.skipped = {static_cast<const char*>(made.block.skipped.data) + low, piece.count};
    if (const int64_t refusal = writer.write(piece); refusal != 0) return refusal;
    add();
  }
  if (!in_pieces) {
    if (const int64_t refusal = writer.write(piece); refusal != 0) return refusal;
    add();
  }
  writer.finish();
  add();
  return 0;
}

int64_t marked(const Made& made) {
  const std::unique_ptr<uint8_t[]> flags(new uint8_t[static_cast<size_t>(std::clamp<int64_t>(made.trace.rows, 0, 100))]);
  if (made.trace.rows > 100) return 0;
  const PerfettoTrace& t = made.trace;
  return devprof::mark_rows({t.events, t.rows, t.type, t.row, t.start_ns, t.end_ns, t.shape}, flags.get());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  generator.seed(std::strtoull(argv[1], nullptr, 10));
  const int64_t traces = std::strtoll(argv[2], nullptr, 10);
  int64_t refused = 0;
  for (int64_t i = 0; i < traces; ++i) {
    Made made;
    std::string whole, pieces;
    if (written(made, false, &whole) != 0 || written(made, true, &pieces) != 0 || whole != pieces || !is_whole(whole) ||
        marked(made) != 0) {
      std::fprintf(stderr, "trace %lld differs\n", static_cast<long long>(i));
      return 1;
    }
    made.damage();
    try {
      refused += written(made, false, &pieces) < 0;
      marked(made);
    } catch (const std::exception&) {  // of memory that a damaged size asks for
      ++refused;
    }
  }
  std::printf("%lld written, %lld refused\n", static_cast<long long>(traces), static_cast<long long>(refused));
  return 0;
}
