// TimerWait: a wait that was started on a wheel_timer, with its handler.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "carillon/asio/net.h"

namespace carillon {
inline namespace CARILLON_ASIO_NAMES {
namespace asio_detail {

struct WaitEntry;

// The thread that takes a wait out of its entry calls complete() or drop(), once. Both take the
// wait.
class TimerWait {
 public:
  enum class End : unsigned char { kExpired, kCancelled, kNoMemory };

  TimerWait() = default;
  TimerWait(const TimerWait&) = delete;
  TimerWait& operator=(const TimerWait&) = delete;

  // Posts the handler to its executor.
  virtual void complete(End how) noexcept = 0;
  // Destroys the handler without a call: the context ends.
  virtual void drop() noexcept = 0;

  TimerWait* next = nullptr;
  WaitEntry* entry = nullptr;  // null once the wait is out

 protected:
  ~TimerWait() = default;
};

// Waits in the order in which they were started.
class WaitList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(TimerWait& wait) noexcept {
    wait.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &wait;
    last_ = &wait;
  }
  TimerWait& pop() noexcept { return *std::exchange(first_, first_->next); }
  void remove(TimerWait& wait) noexcept {
    WaitList others;
    while (!empty()) {
      TimerWait& each = pop();
      if (&each != &wait) others.push(each);
    }
    *this = others;
  }
  template <class Function>
  void for_each(Function&& function) {
    for (TimerWait* wait = first_; wait != nullptr; wait = wait->next) function(*wait);
  }

 private:
  TimerWait* first_ = nullptr;
  TimerWait* last_ = nullptr;
};

// Where a handler is posted to. While this object lives, the context of that executor has work:
// while a wait is pending, its timer sees to that for its own context, so that only a handler with
// another executor needs to be counted.
template <class HandlerExecutor, class Executor>
class PostTo {
  using Tracked = std::decay_t<decltype(net::prefer(std::declval<const HandlerExecutor&>(),
                                                    net::execution::outstanding_work.tracked))>;

 public:
  PostTo(const HandlerExecutor& executor, const Executor& timers) : executor_(executor) {
    if constexpr (std::is_same_v<HandlerExecutor, Executor>) {
      if (executor == timers) return;
    }
    work_.emplace(net::prefer(executor, net::execution::outstanding_work.tracked));
  }
  template <class Function>
  void post(Function&& function) const {
    // The function may end this object.
    const HandlerExecutor executor = executor_;
    net::post(executor, std::forward<Function>(function));
  }

 private:
  HandlerExecutor executor_;
  std::optional<Tracked> work_;
};

// The same for the commonest type. If it holds that of an io_context, as it mostly does, the
// context itself takes a fraction of the memory and of the time.
template <>
class PostTo<net::any_io_executor, net::any_io_executor> {
  using Inner = net::io_context::executor_type;

 public:
  PostTo(const net::any_io_executor& executor, const net::any_io_executor& timers) {
    const auto* inner = executor.target<Inner>();
    if (inner != nullptr && (&executor == &timers || executor == timers)) {
      context_ = static_cast<net::io_context*>(&net::query(*inner, net::execution::context));
    } else {
      other_ = std::make_unique<net::any_io_executor>(
          net::prefer(executor, net::execution::outstanding_work.tracked));
    }
  }
  template <class Function>
  void post(Function&& function) const {
    if (context_ != nullptr) {
      net::post(context_->get_executor(), std::forward<Function>(function));
    } else {
      const net::any_io_executor executor = *other_;
      net::post(executor, std::forward<Function>(function));
    }
  }

 private:
  net::io_context* context_ = nullptr;
  std::unique_ptr<net::any_io_executor> other_;
};

// `Executor`: that of the timer, on which handlers run that have none of their own.
template <class Handler, class Executor>
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): drop() alone destroys it
class WaitOf final : public TimerWait {
  using Allocator = net::associated_allocator_t<Handler, net::recycling_allocator<void>>;
  using HandlerExecutor = net::associated_executor_t<Handler, Executor>;
  using Own = typename std::allocator_traits<Allocator>::template rebind_alloc<WaitOf>;

 public:
  static WaitOf& make(Handler handler, const Executor& executor) {
    Own allocator(net::get_associated_allocator(handler, net::recycling_allocator<void>()));
    WaitOf* const memory = std::allocator_traits<Own>::allocate(allocator, 1);
    try {
      return *::new (memory) WaitOf(std::move(handler), executor);
    } catch (...) {
      std::allocator_traits<Own>::deallocate(allocator, memory, 1);
      throw;
    }
  }

  const Handler& handler() const noexcept { return handler_; }

  void complete(End how) noexcept override {
    how_ = how;
    to_.post(Completion(*this));
  }

  void drop() noexcept override {
    Own allocator(net::get_associated_allocator(handler_, net::recycling_allocator<void>()));
    this->~WaitOf();
    std::allocator_traits<Own>::deallocate(allocator, this, 1);
  }

 private:
  WaitOf(Handler&& handler, const Executor& executor)
      : handler_(std::move(handler)),
        to_(net::get_associated_executor(handler_, executor), executor) {}
  ~WaitOf() = default;

  static Error error_of(End how) noexcept {
    if (how == End::kExpired) return {};
    if (how == End::kCancelled) return net::error::operation_aborted;
    return net::error::no_memory;
  }

  // Memory within the wait, for what Asio allocates to post its completion.
  template <class T>
  struct InPlace {
    using value_type = T;  // NOLINT(readability-identifier-naming): the standard's name

    explicit InPlace(WaitOf& of) noexcept : wait(&of) {}
    template <class U>
    // NOLINTNEXTLINE(google-explicit-constructor): allocators convert implicitly
    InPlace(const InPlace<U>& other) noexcept : wait(other.wait) {}
    T* allocate(std::size_t count) {
      const bool fits = count * sizeof(T) <= sizeof wait->memory_ && alignof(T) <= kAlignment;
      if (fits && !std::exchange(wait->memory_taken_, true))
        return reinterpret_cast<T*>(wait->memory_);
      return std::allocator<T>().allocate(count);
    }
    void deallocate(T* memory, std::size_t count) noexcept {
      if (reinterpret_cast<std::byte*>(memory) == wait->memory_) {
        wait->memory_taken_ = false;
      } else {
        std::allocator<T>().deallocate(memory, count);
      }
    }
    template <class U>
    bool operator==(const InPlace<U>& other) const noexcept {
      return wait == other.wait;
    }

    WaitOf* wait;
  };

  // What is posted. It owns the wait: its slot may be asked to cancel until the handler is called.
  class Completion {
   public:
    using allocator_type = InPlace<void>;  // NOLINT(readability-identifier-naming): Asio's name

    explicit Completion(WaitOf& wait) noexcept : wait_(&wait), memory_(wait) {}
    Completion(Completion&& other) noexcept
        : wait_(std::exchange(other.wait_, nullptr)), memory_(other.memory_) {}
    Completion& operator=(Completion&&) = delete;
    ~Completion() {
      if (wait_ != nullptr) wait_->drop();
    }

    allocator_type get_allocator() const noexcept { return memory_; }

    void operator()() {
      auto slot = net::get_associated_cancellation_slot(wait_->handler_);
      if (slot.is_connected()) slot.clear();
      Handler handler(std::move(wait_->handler_));
      const Error error = error_of(wait_->how_);
      std::exchange(wait_, nullptr)->drop();  // before the call: its memory can be used again
      std::move(handler)(error);
    }

   private:
    WaitOf* wait_;
    allocator_type memory_;
  };

  static constexpr std::size_t kAlignment = alignof(void*);

  Handler handler_;
  PostTo<HandlerExecutor, Executor> to_;
  End how_ = End::kExpired;
  bool memory_taken_ = false;
  alignas(kAlignment) std::byte memory_[6 * sizeof(void*)];
};

}  // namespace asio_detail
}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
