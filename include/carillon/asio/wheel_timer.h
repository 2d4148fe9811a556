// wheel_timer: asio::steady_timer on a timing wheel. A user changes the type and nothing else.
//
//   carillon::wheel_timer timer(socket.get_executor());
//   timer.expires_after(30s);
//   timer.async_wait([](boost::system::error_code error) { ... });     // or any completion token:
//   co_await timer.async_wait(boost::asio::use_awaitable);
//
// Why: asio::steady_timer keeps its timers in a binary heap, where each expires_after() and each
// cancel costs O(log n) and as many cache misses. A server that gives each request a time-out does
// both for each request, and nearly none of these timers expires.
//
// How it works
// ------------
// wheel_timer is asio's own class template, basic_waitable_timer: constructors, cancel, cancel_one,
// completion tokens, cancellation slots, associated executors and allocators, moves and blocking
// waits are the same code. Only the queue behind it differs (detail/wheel_queue.h). Asio keeps one
// queue per kind of timer in each execution context, and drives all queues by one timerfd within
// run(). The queue of wheel_timer is a HierarchicalWheel. No thread is added, and one context can
// have timers of both kinds.
//
// Contracts: those of asio::steady_timer, with these differences:
//  - A wait completes at the end of the tick in which its timer expires: never early, and up to one
//    tick later than asio's. Timers of the same tick complete together, in the order in which they
//    were started; asio completes them in the order of their expiry.
//  - expires_after(), cancel, and starting a wait are O(1). They hold the lock of the context, as
//    asio's do.
//  - The kernel is told of a new deadline only if it is earlier than all others.
//  - Memory: 32 bytes in the timer object (asio: 40), and 8 to 24 bytes per timer in the wheel
//    (asio's heap: 16).
//
// Thread safety: as asio's. One timer: one thread at a time; different timers: any threads.
//
// Asio finds the wheel because timer_queue, a template of boost::asio::detail, is specialised for
// it. Asio itself specialises this template for times of Boost.Date_Time. The template is not
// documented, but has had this interface since Boost 1.77; if the interface changes, this header no
// longer compiles. Tested with Boost 1.81, and tried with Asio 1.38.2.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/wait_traits.hpp>
#include <chrono>
#include <ratio>

#include "carillon/asio/detail/wheel_queue.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_set.h"

// Names are written as asio writes its own.
// NOLINTBEGIN(readability-identifier-naming)
namespace carillon {

// A timer with another tick, here 1 us. It is another type, and each context has another wheel for
// it:
//
//   using fine_timer = carillon::basic_wheel_timer<std::chrono::steady_clock, std::micro>;
//
// TickPeriod: the length of a tick as a std::ratio of a second, a whole multiple of the clock's
// unit. A shorter tick is more exact and wakes the context more often.
// Clock: a steady clock, that is one that never goes back.
// Model: any TimerSet.
template <class Clock, class TickPeriod = std::milli, class Executor = boost::asio::any_io_executor,
          TimerSet Model = HierarchicalWheel<>>
using basic_wheel_timer = boost::asio::basic_waitable_timer<
    Clock, wheel_traits<Clock, TickPeriod, Model, boost::asio::wait_traits<Clock>>, Executor>;

using wheel_timer = basic_wheel_timer<std::chrono::steady_clock>;

}  // namespace carillon
// NOLINTEND(readability-identifier-naming)
