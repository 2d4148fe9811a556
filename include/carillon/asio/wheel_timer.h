// wheel_timer: asio::steady_timer on a timing wheel. A user replaces a type and nothing else.
//
//   carillon::asio::wheel_timer timer(socket.get_executor());
//   timer.expires_after(30s);
//   timer.async_wait([](boost::system::error_code error) { ... });     // or any completion token:
//   co_await timer.async_wait(boost::asio::use_awaitable);
//
// Why: asio::steady_timer keeps its timers in a binary heap, where each expires_after() and each
// cancel costs O(log n) and as many cache misses. A server that gives each request a time-out does
// both per request, and nearly none expires.
//
// How it works
// ------------
// It is asio's own class template, basic_waitable_timer: constructors, cancel, cancel_one,
// completion tokens, cancellation slots, associated executors and allocators, moves and blocking
// waits are literally the same code. What differs is the queue behind it (detail/wheel_queue.h):
// asio keeps one queue per kind of timer in each execution context, and drives all of them by one
// timerfd within run(). That of wheel_timer is a HierarchicalWheel. So there is no thread, and
// timers of both kinds can be used side by side in one context.
//
// Contracts: those of asio::steady_timer, and
//  - A wait completes at the end of the tick in which its timer expires: never early, and up to a
//    tick later than asio's. Timers of the same tick complete together, in the order in which they
//    were started; asio completes them by their expiry.
//  - expires_after(), cancel, and starting a wait: O(1), under the lock of the context, as asio's.
//  - The kernel is told of a new deadline only if it is earlier than all others.
//  - Memory: 32 bytes in the timer where asio has 40, and 8 to 24 in the wheel where asio has 16.
//
// Thread safety: as asio's. One timer: one thread at a time; different timers: any threads.
//
// The wheel takes its place through a template of boost::asio::detail, timer_queue, which asio
// itself specialises for times of Boost.Date_Time. That is not documented, but has been there, with
// this interface, since Boost 1.77; a change of it would not compile. Tested with Boost 1.81, and
// tried with Asio 1.38.2.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/wait_traits.hpp>
#include <chrono>
#include <ratio>

#include "carillon/asio/detail/wheel_queue.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_set.h"

// The names are those of asio, whose types are replaced.
// NOLINTBEGIN(readability-identifier-naming)
namespace carillon::asio {

// Another tick makes another type, and another wheel in each context:
//
//   using fine_timer = carillon::asio::basic_wheel_timer<std::chrono::steady_clock, std::micro>;
//
// TickPeriod: the length of a tick, a std::ratio of a second, and a whole multiple of the clock's
// unit. A finer one is more exact and wakes more often. Clock: one that does not go back. Model:
// any TimerSet.
template <class Clock, class TickPeriod = std::milli, class Executor = boost::asio::any_io_executor,
          TimerSet Model = HierarchicalWheel<>>
using basic_wheel_timer = boost::asio::basic_waitable_timer<
    Clock, wheel_traits<Clock, TickPeriod, Model, boost::asio::wait_traits<Clock>>, Executor>;

using wheel_timer = basic_wheel_timer<std::chrono::steady_clock>;

}  // namespace carillon::asio
// NOLINTEND(readability-identifier-naming)
