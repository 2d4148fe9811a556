// Wheel timers on a wall clock that is set while they wait.
//
// Built without epoll, as property_test.cpp.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "carillon/asio/wheel_timer.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using boost::system::error_code;
using Log = std::vector<std::string>;

// A wall clock that a test sets.
struct SetClock {
  // NOLINTBEGIN(readability-identifier-naming): names that the standard gives
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SetClock>;
  [[maybe_unused]] static constexpr bool is_steady = false;
  // NOLINTEND(readability-identifier-naming)

  static time_point now() { return time_point(time); }
  inline static duration time{0};
};

class ClockSet : public ::testing::Test {
 protected:
  using Timer = basic_wheel_timer<SetClock>;

  void SetUp() override { SetClock::time = 1'000'000ms; }
  auto log(const std::string& name) {
    return [this, name](error_code error) { log_.push_back(name + (error ? " aborted" : "")); };
  }
  // The clock shows `time`, and the context is told.
  void set(SetClock::duration time) {
    SetClock::time = time;
    Timer look(io_, SetClock::now());
    look.async_wait([](error_code) {});
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_;
  Log log_;
};

TEST_F(ClockSet, AClockThatIsSetForwardCompletesWhatItHasPassed) {
  Timer soon(io_, 10s);
  Timer far(io_, 1h);
  soon.async_wait(log("soon"));
  far.async_wait(log("far"));
  set(1'000'000ms + 30min);
  EXPECT_EQ(log_, (Log{"soon"}));
  set(1'000'000ms + 1h);
  EXPECT_EQ(log_, (Log{"soon", "far"}));
}

TEST_F(ClockSet, WhenTheClockIsSetBackWaitsWaitAgain) {
  Timer first(io_, 10s);
  Timer second(io_, 20s);
  first.async_wait(log("first"));
  second.async_wait(log("second"));
  set(1'000'000ms + 9s);
  set(1'000'000ms - 1h);
  EXPECT_TRUE(log_.empty());
  Timer between(io_, 1h + 15s);
  between.async_wait(log("between"));
  set(1'000'000ms + 9'999ms);
  EXPECT_TRUE(log_.empty());
  set(1'000'000ms + 10s);
  EXPECT_EQ(log_, (Log{"first"}));
  set(1'000'000ms + 15s);
  EXPECT_EQ(log_, (Log{"first", "between"}));
  EXPECT_EQ(second.cancel(), 1U);
  set(1'000'000ms + 1h);
  EXPECT_EQ(log_, (Log{"first", "between", "second aborted"}));
}

}  // namespace
}  // namespace carillon::testing
