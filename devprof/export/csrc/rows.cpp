#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "columns.h"
#include "perfetto.h"

namespace devprof {

namespace {

struct Row {
  int64_t last_start = std::numeric_limits<int64_t>::min();
  int64_t last_end = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> open;  // ends of the slices that are open, the innermost last
};

}  // namespace

int64_t mark_rows(const Slices& slices, uint8_t* flags) {
  const int64_t n = slices.events;
  if (n < 0 || slices.rows < 0 || !holds(slices.type, n, 1) || !holds(slices.row, n, sizeof(int32_t)) ||
      !holds(slices.start_ns, n, sizeof(int64_t)) || !holds(slices.end_ns, n, sizeof(int64_t)) ||
      !holds(slices.shape, kTypes, 1)) {
    return kBadColumn;
  }
  const auto* const type = static_cast<const uint8_t*>(slices.type.data);
  const auto* const shape = static_cast<const uint8_t*>(slices.shape.data);
  const auto* const row_of = static_cast<const int32_t*>(slices.row.data);
  const auto* const start_ns = static_cast<const int64_t*>(slices.start_ns.data);
  const auto* const end_ns = static_cast<const int64_t*>(slices.end_ns.data);
  std::memset(flags, 0, static_cast<size_t>(slices.rows));
  std::vector<Row> rows(static_cast<size_t>(slices.rows));
  for (int64_t i = 0; i < n; ++i) {
    if ((shape[type[i]] & kIsSlice) == 0) continue;
    const int32_t number = row_of[i];
    if (number < 0 || number >= slices.rows) return kBadNumber;
    if (flags[number] & kOutOfOrder) continue;
    Row& row = rows[static_cast<size_t>(number)];
    const int64_t start = start_ns[i], end = std::max(start, end_ns[i]);
    if (start < row.last_start || (start == row.last_start && end > row.last_end)) {
      flags[number] |= kOutOfOrder | kCrosses;
      continue;
    }
    row.last_start = start;
    row.last_end = end;
    if (flags[number] & kCrosses) continue;
    while (!row.open.empty() && row.open.back() <= start) row.open.pop_back();
    if (end == start) continue;
    if (!row.open.empty() && row.open.back() < end) flags[number] |= kCrosses;
    row.open.push_back(end);
  }
  return 0;
}

}  // namespace devprof
