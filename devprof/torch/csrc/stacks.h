// Correlation stacks: per thread, one of op ids and one of user-range ids, stamped with the session's generation.
//
// Called on op threads at every push and pop, so nothing here locks, allocates in the steady state, or touches Python. Kineto
// may call a session that is being torn down on another thread; so all state is static or thread-local, never a member.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devprof::stacks {

enum Kind : uint32_t { kOp = 0, kUser = 1 };

using PushFn = void (*)(uint32_t kind, uint64_t id);
using PopFn = void (*)(uint32_t kind);

// Start a generation: stacks of earlier ones are cleared when their thread next uses them, ids seen so far are forgotten.
void begin(uint64_t generation);
// End it: pushes are ignored from here on.
void end(uint64_t generation);
// Generation that is recording, 0 when none is.
uint64_t recording();

void push(Kind kind, uint64_t id);
void pop(Kind kind);
uint64_t top(Kind kind);
size_t depth(Kind kind);
// Pops on an empty stack since the generation began, all threads.
uint64_t unbalancedPops();

// Mirror every push and pop into a vendor's runtime. Returns false when all slots are taken.
bool mirror(PushFn push, PopFn pop);
void clearMirrors();

// known[i] = 1 where ids[i] was pushed as an op in the latest generation.
void knownOps(const int64_t* ids, size_t n, uint8_t* known);
// Pairs (user id, enclosing user id or 0) of the latest generation; returns how many there are, copies up to capacity.
size_t userParents(uint64_t* pairs, size_t capacity);

} // namespace devprof::stacks
