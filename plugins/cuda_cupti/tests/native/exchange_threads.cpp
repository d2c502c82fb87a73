// Drives the native exchange from many threads, for a thread sanitizer and an address sanitizer.
//
//   exchange_threads SECONDS
//
// Threads ask for buffers, fill them and hand them back, some of them twice, some late, some never lent, as a CUPTI gone wrong
// would; one thread decodes; one ends sessions and begins new ones. No buffer may be anybody's but its holder's, every buffer
// that is lent must be clear, and in the end CUPTI holds none. Prints how many buffers were decoded.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

extern "C" {
void devprof_cupti_requested(uint8_t** buffer, size_t* size, size_t* most_records);
void devprof_cupti_completed(void* context, uint32_t stream, uint8_t* address, size_t size, size_t valid);
int32_t devprof_cupti_begin(int64_t size, int64_t ready);
void devprof_cupti_end();
void devprof_cupti_trim(int64_t keep);
int32_t devprof_cupti_next(int64_t* found);
void devprof_cupti_post(int64_t signal);
void devprof_cupti_give_back(uint8_t* address);
void devprof_cupti_give_up(int64_t up_to);
void devprof_cupti_counts(int64_t up_to, int64_t* found);
}

#define CHECK(what)                                           \
  do {                                                        \
    if (!(what)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
      std::exit(1);                                           \
    }                                                         \
  } while (false)

namespace {

constexpr int64_t kSize = 4096;
constexpr int kThreads = 6;
std::atomic<bool> g_over{false};
std::atomic<int64_t> g_decoded{0};

void fill(int number) {
  std::mt19937 random(number);
  std::vector<uint8_t*> held;
  const auto hand_back = [&](size_t at) {
    uint8_t* buffer = held[at];
    held[at] = held.back();
    held.pop_back();
    const size_t valid = 1 + random() % kSize;
    for (size_t i = 0; i < valid; ++i) buffer[i] = static_cast<uint8_t>(number);
    devprof_cupti_completed(nullptr, 0, buffer, kSize, random() % 50 == 0 ? size_t{1} << 40 : valid);
  };
  while (!g_over.load()) {
    uint8_t* buffer = nullptr;
    size_t size = 7, most = 7;
    devprof_cupti_requested(&buffer, &size, &most);
    CHECK(most == 0);
    if (buffer == nullptr) {  // in between two sessions
      CHECK(size == 0);
      std::this_thread::yield();
      continue;
    }
    CHECK(size == kSize);
    for (int64_t i = 0; i < kSize; ++i) CHECK(buffer[i] == 0);
    buffer[0] = static_cast<uint8_t>(number);
    held.push_back(buffer);
    if (held.size() > 3 || random() % 2) hand_back(random() % held.size());
    uint8_t nobodys;
    if (random() % 20 == 0) devprof_cupti_completed(nullptr, 0, &nobodys, kSize, kSize);
    if (random() % 20 == 0) devprof_cupti_completed(nullptr, 0, nullptr, kSize, kSize);
  }
  while (!held.empty()) hand_back(0);
}

void decode() {
  int64_t found[2];
  for (;;) {
    if (devprof_cupti_next(found) == 0) {
      if (found[0] == 0) return;
      continue;
    }
    auto* buffer = reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(found[0]));
    CHECK(found[1] >= 0 && found[1] <= kSize);
    for (int64_t i = 1; i < found[1]; ++i) CHECK(buffer[i] == buffer[0] || buffer[i] == 0);
    devprof_cupti_give_back(buffer);
    g_decoded.fetch_add(1);
  }
}

}  // namespace

int main(int, char** words) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(words[1]));
  CHECK(devprof_cupti_begin(kSize, 2) == 0);
  std::vector<std::thread> threads;
  for (int number = 1; number <= kThreads; ++number) threads.emplace_back(fill, number);
  while (std::chrono::steady_clock::now() < until) {
    std::thread decoder(decode);
    int64_t counts[7], loans = 0;
    for (int i = 0; i < 20; ++i) {
      devprof_cupti_post(1);
      devprof_cupti_counts(loans, counts);
      CHECK(counts[3] <= counts[1] && counts[4] >= loans && counts[6] == 0);
      loans = counts[4];
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    devprof_cupti_end();
    devprof_cupti_post(0);
    decoder.join();
    devprof_cupti_trim(3);
    devprof_cupti_give_up(loans);
    devprof_cupti_counts(loans, counts);
    CHECK(counts[3] == 0);
    CHECK(devprof_cupti_begin(kSize, 2) == 0);
  }
  g_over.store(true);
  for (std::thread& thread : threads) thread.join();
  devprof_cupti_end();
  devprof_cupti_trim(0);
  CHECK(devprof_cupti_begin(kSize, 2) == 0);  // what came back in between is free
  int64_t counts[7];
  devprof_cupti_counts(INT64_MAX, counts);
  CHECK(counts[1] == 0 && counts[2] == 0 && counts[3] == 0 && counts[5] > 0);
  std::printf("%lld\n", static_cast<long long>(g_decoded.load()));
}
