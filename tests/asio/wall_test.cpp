// wall_wheel_timer and wheel_timer in the standalone Asio and in Boost's: the same file is compiled
// for both.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "asio/either_asio.h"
#include "carillon/asio/wheel_timer.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

class WallWheelTimer : public ::testing::Test {
 protected:
  auto log(const std::string& name) {
    return [this, name](error_code error) { log_.push_back(name + (error ? " aborted" : "")); };
  }
  net::io_context io_;
  Log log_;
};

TEST_F(WallWheelTimer, CompletesAtATimeOfTheSystemClockAndNeverBefore) {
  wall_wheel_timer timer(io_, 5ms);
  wall_wheel_timer far(io_, 1h);
  wall_wheel_timer past(io_, -1h);
  const auto expiry = timer.expiry();
  far.async_wait(log("far"));
  past.async_wait(log("past"));
  timer.async_wait([&](error_code error) {
    EXPECT_FALSE(error);
    EXPECT_GE(std::chrono::system_clock::now(), expiry);
    log_.push_back("timer");
    far.cancel();
  });
  io_.run();
  EXPECT_EQ(log_, (Log{"past", "timer", "far aborted"}));
}

TEST_F(WallWheelTimer, AWheelTimerBesideIt) {
  wheel_timer steady(io_, 2ms);
  wall_wheel_timer wall(io_, 1h);
  wall.async_wait(log("wall"));
  steady.async_wait([&](error_code) {
    log_.push_back("steady");
    wall.cancel();
  });
  io_.run();
  EXPECT_EQ(log_, (Log{"steady", "wall aborted"}));
}

TEST_F(WallWheelTimer, TheSameTimerWaitsAgainAndAgain) {
  wall_wheel_timer timer(io_);
  int left = 20;
  std::function<void(error_code)> again = [&](error_code) {
    if (--left == 0) return;
    timer.expires_after(1ms);
    timer.async_wait(again);
  };
  timer.async_wait(again);
  io_.run();
  EXPECT_EQ(left, 0);
}

TEST_F(WallWheelTimer, TheContextMayEndBeforeTheWait) {
  auto owned = std::make_shared<int>(7);
  {
    net::io_context io;
    auto timer = std::make_shared<wall_wheel_timer>(io, 1h);
    wall_wheel_timer& waits = *timer;
    waits.async_wait(
        [timer = std::move(timer), owned](error_code) { ADD_FAILURE() << "was called"; });
    io.poll();
  }
  EXPECT_EQ(owned.use_count(), 1) << "the handler, and the timer that it held, are gone";
}

}  // namespace
}  // namespace carillon::testing
