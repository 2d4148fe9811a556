// The timers of a context end the process when they are used against their contract, and say how.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <ratio>

#include "carillon/asio/detail/timer_wait.h"
#include "carillon/asio/detail/wheel_service.h"
#include "carillon/wheel/hierarchical_wheel.h"

namespace carillon::testing {
namespace {

using Service =
    asio_detail::WheelService<std::chrono::steady_clock, std::milli, HierarchicalWheel<>>;

struct Wait final : asio_detail::TimerWait {
  void complete(End) noexcept override {}
  void drop() noexcept override {}
};

TEST(AsioPreconditionsDeathTest, ATimerWithWaitsIsNotReplaced) {
  boost::asio::io_context context;
  auto& service = boost::asio::use_service<Service>(context);
  asio_detail::WaitEntry from, to;
  Wait wait;
  to.waits.push(wait);
  EXPECT_DEATH(service.move(from, to), "move\\(\\) requires: to.waits.empty\\(\\)");
}

}  // namespace
}  // namespace carillon::testing
