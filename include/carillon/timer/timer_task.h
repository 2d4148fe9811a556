// TimerTask: a callable without arguments, or with its timer's handle, called once or many times.
// It can be moved, and need not be copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "carillon/require.h"
#include "carillon/timer/timer_handle.h"

namespace carillon {
namespace detail {

// What can be a task: it is called without arguments if that is possible, and with the handle of
// its own timer otherwise.
template <class F>
inline constexpr bool kIsTask = std::is_invocable_v<F&> || std::is_invocable_v<F&, TimerHandle>;

template <class F>
void call_task(F& task, TimerHandle self) {
  if constexpr (std::is_invocable_v<F&>) {
    static_cast<void>(task());
  } else {
    static_cast<void>(task(TimerHandle(self)));  // an rvalue, as in kIsTask
  }
}

// Where a callable lives: up to 48 bytes in place, larger ones on the heap.
struct TaskStorage {
  static constexpr std::size_t kInPlace = 48;
  static constexpr std::size_t kAlignment = 16;

  alignas(kAlignment) std::byte bytes[kInPlace];
};

// The operations on the callable in a TaskStorage.
struct TaskOps {
  void (*call)(TaskStorage& task, TimerHandle self);
  void (*move)(TaskStorage& from, TaskStorage& to) noexcept;  // and destroys `from`
  void (*destroy)(TaskStorage& task) noexcept;                // null if there is nothing to do
  // For a task that goes by a calendar: returns the first time after `after` at which it must run,
  // in ns of the wall clock; kForever if it never runs again. Throws what the calendar throws. Null
  // if the task does not go by a calendar.
  std::int64_t (*next_time)(TaskStorage& task, std::int64_t after) = nullptr;
};

// Base of a callable that goes by a calendar; it has `std::int64_t next_time(std::int64_t after)`.
struct GoesByCalendar {};

template <class F, class Access>
constexpr auto next_time_of() noexcept -> decltype(TaskOps::next_time) {
  if constexpr (std::is_base_of_v<GoesByCalendar, F>) {
    return [](TaskStorage& task, std::int64_t after) { return Access::get(task).next_time(after); };
  } else {
    return nullptr;
  }
}

template <class F>
constexpr bool fits_in_place() noexcept {
  const bool small = sizeof(F) <= TaskStorage::kInPlace;
  const bool aligned = TaskStorage::kAlignment % alignof(F) == 0;
  return small && aligned && std::is_nothrow_move_constructible_v<F>;
}

template <class F>
struct TaskInPlace {
  static F& get(TaskStorage& task) noexcept {
    return *std::launder(reinterpret_cast<F*>(task.bytes));
  }
  static void call(TaskStorage& task, TimerHandle self) { call_task(get(task), self); }
  static void move(TaskStorage& from, TaskStorage& to) noexcept {
    std::construct_at(reinterpret_cast<F*>(to.bytes), std::move(get(from)));
    std::destroy_at(&get(from));
  }
  static void destroy(TaskStorage& task) noexcept { std::destroy_at(&get(task)); }

  static constexpr TaskOps kOps{call, move, std::is_trivially_destructible_v<F> ? nullptr : destroy,
                                next_time_of<F, TaskInPlace>()};
};

template <class F>
struct TaskOnHeap {
  static F*& pointer(TaskStorage& task) noexcept {
    return *std::launder(reinterpret_cast<F**>(task.bytes));
  }
  static F& get(TaskStorage& task) noexcept { return *pointer(task); }
  static void call(TaskStorage& task, TimerHandle self) { call_task(get(task), self); }
  static void move(TaskStorage& from, TaskStorage& to) noexcept {
    std::construct_at(reinterpret_cast<F**>(to.bytes), pointer(from));
  }
  static void destroy(TaskStorage& task) noexcept { delete pointer(task); }

  static constexpr TaskOps kOps{call, move, destroy, next_time_of<F, TaskOnHeap>()};
};

// True for callables that may be empty.
template <class F>
inline constexpr bool kMayBeEmpty = std::is_pointer_v<F>;
template <class Signature>
inline constexpr bool kMayBeEmpty<std::function<Signature>> = true;

// Throws std::invalid_argument if `callable` is empty.
template <class F>
void refuse_if_empty([[maybe_unused]] const F& callable) {
  if constexpr (kMayBeEmpty<F>) {
    if (callable == nullptr)
      throw std::invalid_argument(
          "carillon: a task is an empty function; it must be one that can be called");
  }
}

// Makes a callable in `storage`. Throws what the callable's constructor throws, std::bad_alloc if
// the callable does not fit in place, and std::invalid_argument if it is empty.
template <class F>
const TaskOps& emplace_task(TaskStorage& storage, F&& callable) {
  using Callable = std::decay_t<F>;
  static_assert(kIsTask<Callable>, "a task is called without arguments, or with a TimerHandle");
  refuse_if_empty<Callable>(callable);
  if constexpr (fits_in_place<Callable>()) {
    std::construct_at(reinterpret_cast<Callable*>(storage.bytes), std::forward<F>(callable));
    return TaskInPlace<Callable>::kOps;
  } else {
    std::construct_at(reinterpret_cast<Callable**>(storage.bytes),
                      new Callable(std::forward<F>(callable)));
    return TaskOnHeap<Callable>::kOps;
  }
}

}  // namespace detail

class TimerTask {
 public:
  TimerTask() noexcept = default;
  template <class F>
  // clang-tidy 14 does not see the constraint.
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  requires(!std::is_same_v<std::decay_t<F>, TimerTask>) explicit TimerTask(F&& callable)
      : ops_(&detail::emplace_task(storage_, std::forward<F>(callable))) {}
  // Moves the callable out of `from`, which is empty afterwards.
  TimerTask(const detail::TaskOps& ops, detail::TaskStorage& from) noexcept : ops_(&ops) {
    ops.move(from, storage_);
  }
  TimerTask(TimerTask&& other) noexcept { take(other); }
  TimerTask& operator=(TimerTask&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~TimerTask() { reset(); }

  explicit operator bool() const noexcept { return ops_ != nullptr; }

  // Throws what the callable throws. A callable that takes a handle gets an empty one: its timer is
  // over. REQUIRES: not empty.
  void operator()() {
    CARILLON_REQUIRE(ops_ != nullptr);
    ops_->call(storage_, TimerHandle());
  }

  void reset() noexcept {
    const detail::TaskOps* ops = std::exchange(ops_, nullptr);
    if (ops != nullptr && ops->destroy != nullptr) ops->destroy(storage_);
  }

 private:
  void take(TimerTask& other) noexcept {
    ops_ = std::exchange(other.ops_, nullptr);
    if (ops_ != nullptr) ops_->move(other.storage_, storage_);
  }

  const detail::TaskOps* ops_ = nullptr;
  detail::TaskStorage storage_;
};

}  // namespace carillon
