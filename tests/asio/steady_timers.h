// The kinds of timer for which the tests of steady_timer run, and the fixture of these tests.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <ratio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/asio/wheel_timer.h"
#include "models/binary_heap.h"

namespace carillon::testing {

namespace net = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

struct Named {
  template <class T>
  static std::string GetName(int) {
    if (std::is_same_v<T, net::steady_timer>) return "AsioSteadyTimer";
    if (std::is_same_v<T, wheel_timer>) return "WheelTimer";
    return std::is_same_v<T, basic_wheel_timer<Clock, std::micro>> ? "WheelTimerOfMicroseconds"
                                                                   : "WheelTimerOnAnotherModel";
  }
};

using Log = std::vector<std::string>;

// A handler that appends its name and its result to a log. It is one type for all kinds of timer,
// so that Asio's part is compiled only once.
struct NamedHandler {
  Log& log;
  std::string name;

  void operator()(error_code error) const { log.push_back(name + (error ? " aborted" : " done")); }
};

template <class Timer>
class SteadyTimers : public ::testing::Test {
 protected:
  NamedHandler handler(std::string name) { return {log_, std::move(name)}; }

  net::io_context io_;
  Log log_;
};
using Timers =
    ::testing::Types<net::steady_timer, wheel_timer, basic_wheel_timer<Clock, std::micro>,
                     basic_wheel_timer<Clock, std::milli, net::any_io_executor, BinaryHeap>>;

}  // namespace carillon::testing
