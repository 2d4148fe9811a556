// VirtualTime: the clock of event loops that ask the system for the time. This program answers in
// place of the system.
//
// libuv, libevent and Asio are driven through their own public interfaces and run their own loops.
// virtual_time.cpp replaces the functions with which the loops call the kernel:
// clock_gettime(CLOCK_MONOTONIC) returns this time; epoll_wait(timeout) finds no events and,
// instead of sleeping, moves this time on by `timeout`. So no system call is measured, a loop can
// be turned tick by tick, and a loop that is left to run goes from timer to timer at once. A tick
// is a millisecond, the unit of all three.
#pragma once

#include <cstdint>

namespace carillon::bench {

struct VirtualTime {
  // Milliseconds. Far from 0, which some loops take for "no time read yet".
  static constexpr std::uint64_t kStart = 1'000'000'000;

  static inline std::uint64_t milliseconds = kStart;

  static void reset() { milliseconds = kStart; }
  static std::uint64_t tick() { return milliseconds - kStart; }
  static void set_tick(std::uint64_t tick) { milliseconds = kStart + tick; }
};

}  // namespace carillon::bench
