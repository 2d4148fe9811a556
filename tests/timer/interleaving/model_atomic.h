// ModelAtomic and Plain: programs under the Explorer use them instead of std::atomic and of plain
// variables. Model: the policy that puts ModelAtomic into the lock-free parts of the timer service,
// faithfully or with a twist.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "timer/interleaving/explorer.h"

namespace carillon::interleaving {

// A twist breaks something on purpose, to show that the Explorer finds it. Faithful breaks nothing.
struct Faithful {
  static constexpr bool kSplitSwap = false;  // true: a swap is a load and a store in two steps
  static constexpr bool kNotifies = true;
  static constexpr std::memory_order order(std::memory_order order) { return order; }
  static constexpr std::uint64_t stored(std::uint64_t value) { return value; }
};

struct WithoutSeqCst : Faithful {
  static constexpr std::memory_order order(std::memory_order order) {
    return order == std::memory_order_seq_cst ? std::memory_order_acq_rel : order;
  }
};
struct WithoutRelease : Faithful {
  static constexpr std::memory_order order(std::memory_order order) {
    if (order == std::memory_order_release) return std::memory_order_relaxed;
    return order == std::memory_order_acq_rel ? std::memory_order_acquire : order;
  }
};
struct WithoutAcquire : Faithful {
  static constexpr std::memory_order order(std::memory_order order) {
    if (order == std::memory_order_acquire) return std::memory_order_relaxed;
    return order == std::memory_order_acq_rel ? std::memory_order_release : order;
  }
};
struct WithSplitSwaps : Faithful {
  static constexpr bool kSplitSwap = true;
};
struct WithoutNotifying : Faithful {
  static constexpr bool kNotifies = false;
};

template <class T, class Twist = Faithful>
class ModelAtomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

 public:
  ModelAtomic() : ModelAtomic(T{}) {}
  explicit ModelAtomic(T value) : location_(detail::new_atomic(word(value))) {}
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order order) const {
    return value(detail::load(location_, Twist::order(order)));
  }
  void store(T desired, std::memory_order order) {
    detail::store(location_, out(desired), Twist::order(order));
  }
  T exchange(T desired, std::memory_order order) {
    return value(
        detail::modify(location_, detail::Change::kSet, out(desired), Twist::order(order)));
  }
  T fetch_or(T bits, std::memory_order order) {
    return value(detail::modify(location_, detail::Change::kOr, word(bits), Twist::order(order)));
  }
  T fetch_add(T amount, std::memory_order order) {
    return value(
        detail::modify(location_, detail::Change::kAdd, word(amount), Twist::order(order)));
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success,
                               std::memory_order failure) {
    if constexpr (Twist::kSplitSwap) {
      const T seen = load(failure);
      if (seen != expected) {
        expected = seen;
        return false;
      }
      store(desired, success);
      return true;
    }
    std::uint64_t seen = word(expected);
    const bool swapped = detail::compare_exchange(location_, seen, out(desired),
                                                  Twist::order(success), Twist::order(failure));
    if (!swapped) expected = value(seen);
    return swapped;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                             std::memory_order failure) {
    return compare_exchange_strong(expected, desired, success, failure);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order) {
    const bool releases = order == std::memory_order_release || order == std::memory_order_acq_rel;
    const auto failure = !releases                            ? order
                         : order == std::memory_order_release ? std::memory_order_relaxed
                                                              : std::memory_order_acquire;
    return compare_exchange_strong(expected, desired, order, failure);
  }
  void wait(T old, std::memory_order order) const {
    detail::wait(location_, word(old), Twist::order(order));
  }
  void notify_all() {
    if constexpr (Twist::kNotifies) detail::notify_all(location_);
  }

 private:
  static std::uint64_t word(T value) { return static_cast<std::uint64_t>(value); }
  static std::uint64_t out(T value) { return Twist::stored(word(value)); }
  static T value(std::uint64_t word) { return static_cast<T>(word); }

  int location_;
};

// Stands for a plain variable. Two accesses that are not ordered are a data race if one is a write.
template <class T>
class Plain {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

 public:
  explicit Plain(T value = T{}) : value_(value), location_(detail::new_plain(word(value))) {}
  Plain(const Plain&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): stands for a variable
  operator T() const {
    detail::plain_read(location_);
    return value_;
  }
  Plain& operator=(T value) {
    detail::plain_write(location_, word(value));
    value_ = value;
    return *this;
  }
  Plain& operator=(const Plain& other) {
    if (this != &other) *this = static_cast<T>(other);
    return *this;
  }

 private:
  static std::uint64_t word(T value) {
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<std::uintptr_t>(value);
    } else {
      return static_cast<std::uint64_t>(value);
    }
  }

  T value_;
  int location_;
};

template <class Twist = Faithful>
struct Model {
  template <class T>
  using Atomic = ModelAtomic<T, Twist>;

  static void yield() { detail::yield(); }
  struct Patience {
    void wait() { yield(); }
  };
};

}  // namespace carillon::interleaving
