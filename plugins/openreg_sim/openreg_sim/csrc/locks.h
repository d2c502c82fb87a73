// Every lock of the library in one place, so that a fork finds all of them free. Knows no torch.
#pragma once

#include <array>
#include <mutex>

namespace openreg {

// In the order in which a thread may take one while it holds another. None is held while Python runs: a thread that forks
// has the GIL, and waits for all of them.
enum class Lock : size_t { OpInfos, OpNames, Signatures, Pinned, Accounting, Ring, kCount };

inline std::array<std::mutex, static_cast<size_t>(Lock::kCount)> locks;

// Holds a lock until the end of the scope, or until `unlock`.
class Hold : public std::unique_lock<std::mutex> {
 public:
  explicit Hold(Lock lock) : std::unique_lock<std::mutex>(locks[static_cast<size_t>(lock)]) {}
};

inline void lock_all() {
  for (std::mutex& lock : locks) lock.lock();
}

inline void unlock_all() {
  for (std::mutex& lock : locks) lock.unlock();
}

}  // namespace openreg
