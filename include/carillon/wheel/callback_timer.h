// CallbackTimer and MemberTimer: timers that know what to do when they fire. With them, timers of
// several kinds share one wheel, without tags and casts.
//
//   struct Session {
//     void on_idle();
//     void send_ping();
//
//     carillon::MemberTimer<&Session::on_idle> idle{*this};
//     carillon::MemberTimer<&Session::send_ping> ping{*this};
//   };
//
//   carillon::CallbackTimer report([&] { print(statistics); });
//
//   wheel.schedule_after(session.idle, 30'000);
//   wheel.schedule_after(session.ping, 5'000);
//   wheel.schedule_after(report, 60'000);
//   wheel.advance(now_ms(), carillon::call_timer);    // calls whatever is due
//
// They are nodes like any other (timer_node.h): the owner embeds them, any TimerSet takes them, and
// nothing is allocated.
//
// Contracts
//  - call_timer() calls what the timer was made for, once. An exception from there leaves advance()
//    (timer_set.h, contract 8).
//  - What is called may schedule, cancel and destroy any timer, its own too. A callable that
//    destroys its own timer destroys itself, and must not touch its captures afterwards.
//  - REQUIRES: a set that is advanced with call_timer holds no other nodes than these.
//
// Not thread-safe, as any node.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// The base of both: a node with a function. For further kinds of timers: derive, and pass a
// function that casts its argument to the derived class.
class CallableTimer : public TimerNode {
 public:
  void call() { call_(*this); }

 protected:
  using Call = void (*)(CallableTimer&);

  explicit CallableTimer(Call function) noexcept : call_(function) {}
  ~CallableTimer() = default;

 private:
  Call call_;
};

// For advance(): calls the timer that fires. REQUIRES: it is a CallableTimer.
inline void call_timer(TimerNode& timer) {
  static_cast<CallableTimer&>(timer).call();
}

// A timer with a callable inside, 64 bytes in all. A callable that does not fit is refused when it
// is compiled: let it capture a reference, or use a MemberTimer.
class CallbackTimer : public CallableTimer {
 public:
  static constexpr std::size_t kRoom = 32;  // bytes
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);

  template <class F>
  static constexpr bool kFits = (std::alignment_of_v<F> <= kAlignment) && (sizeof(F) <= kRoom);

  // Throws what moving the callable throws.
  template <class F>
  requires kFits<F> && std::invocable<F&>
  explicit CallbackTimer(F callable)
      : CallableTimer(&call_stored<F>), destroy_(&destroy_stored<F>) {
    std::construct_at(reinterpret_cast<F*>(room_), std::move(callable));
  }
  ~CallbackTimer() { destroy_(*this); }

 private:
  template <class F>
  F& stored() noexcept {
    return *std::launder(reinterpret_cast<F*>(room_));
  }
  template <class F>
  static void call_stored(CallableTimer& timer) {
    std::invoke(static_cast<CallbackTimer&>(timer).stored<F>());
  }
  template <class F>
  static void destroy_stored(CallbackTimer& timer) noexcept {
    std::destroy_at(&timer.stored<F>());
  }

  void (*destroy_)(CallbackTimer&);
  alignas(kAlignment) std::byte room_[kRoom];
};

static_assert(sizeof(CallbackTimer) == 64, "one cache line");

// A timer that calls a member function of its owner: kMember is the address of a member function
// without arguments. 32 bytes.
template <auto kMember>
class MemberTimer : public CallableTimer {
  template <class>
  struct OwnerOf;
  template <class Member, class T>
  struct OwnerOf<Member T::*> {
    using Type = T;
  };

 public:
  using Owner = typename OwnerOf<decltype(kMember)>::Type;

  // REQUIRES: the owner lives as long as the timer may fire.
  explicit MemberTimer(Owner& owner) noexcept : CallableTimer(&call_owner), owner_(owner) {}

 private:
  static void call_owner(CallableTimer& timer) {
    std::invoke(kMember, static_cast<MemberTimer&>(timer).owner_);
  }

  Owner& owner_;
};

}  // namespace carillon
