// Names and signatures of launches, interned to numbers that fit a ring record.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "locks.h"

namespace openreg {

// Values seen once, in order; number 0 stands for "unknown". Safe from any thread; entries never move.
template <class Value, Lock lock, class Hash = std::hash<Value>>
class Interned {
 public:
  uint32_t intern(const Value& value) {
    const Hold hold(lock);
    const auto found = numbers_.find(value);
    if (found != numbers_.end()) return found->second;
    if (values_.size() >= kMost) return 0;
    values_.push_back(value);
    const auto number = static_cast<uint32_t>(values_.size());
    numbers_.emplace(value, number);
    return number;
  }

  // The value with this number, or null.
  const Value* find(uint32_t number) {
    const Hold hold(lock);
    return number == 0 || number > values_.size() ? nullptr : &values_[number - 1];
  }

 private:
  static constexpr size_t kMost = size_t{1} << 18;  // a program with ever new shapes must not eat the memory
  std::deque<Value> values_;
  std::unordered_map<Value, uint32_t, Hash> numbers_;
};

inline Interned<std::string, Lock::OpNames>& op_names() {
  static auto* const instance = new Interned<std::string, Lock::OpNames>;
  return *instance;
}

// The tensor arguments of a launch as numbers: for each its dtype, its dimension and its sizes.
using Signature = std::vector<int64_t>;

struct SignatureHash {
  size_t operator()(const Signature& signature) const {
    uint64_t hash = 1469598103934665603ull;
    for (const int64_t value : signature) hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211ull;
    return hash ^ (hash >> 32);
  }
};

inline Interned<Signature, Lock::Signatures, SignatureHash>& signatures() {
  static auto* const instance = new Interned<Signature, Lock::Signatures, SignatureHash>;
  return *instance;
}

// The signature of one call while it is collected. The vector is lent by the thread, so that a call allocates nothing.
class SignatureBuilder {
 public:
  SignatureBuilder() : values_(std::move(spare())) { values_.clear(); }
  ~SignatureBuilder() { spare() = std::move(values_); }
  SignatureBuilder(const SignatureBuilder&) = delete;
  SignatureBuilder& operator=(const SignatureBuilder&) = delete;

  void add(const at::TensorBase& tensor) {
    values_.push_back(static_cast<int64_t>(tensor.scalar_type()));
    values_.push_back(tensor.dim());
    const at::IntArrayRef sizes = tensor.sizes();
    values_.insert(values_.end(), sizes.begin(), sizes.end());
  }

  // Its number. Each thread has a cache in front of the shared table.
  uint32_t number() const {
    static thread_local std::unordered_map<Signature, uint32_t, SignatureHash> cache;
    const auto found = cache.find(values_);
    if (found != cache.end()) return found->second;
    if (cache.size() > 4096) cache.clear();
    return cache.emplace(values_, signatures().intern(values_)).first->second;
  }

 private:
  static Signature& spare() {
    static thread_local Signature values;
    return values;
  }
  Signature values_;
};

}  // namespace openreg
