// A user's file that opens the namespace beside the usual alias of Asio, and has everyday names of
// its own: it compiles.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>

#include "carillon/asio/wheel_timer.h"
#include "carillon/asio/with_timeout.h"
#include "carillon/idle/idle_tracker.h"
#include "carillon/timer/coroutine.h"
#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "carillon/timer/wheel_descriptor.h"
#include "carillon/timer/with_timeout.h"
#include "carillon/wheel/clock_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/timer_pool.h"

namespace asio = boost::asio;
using namespace carillon;     // NOLINT(google-build-using-namespace)
using namespace std::chrono;  // NOLINT(google-build-using-namespace)

struct Task {
  int number = 7;
};
struct Executor {};
struct Timer {};
struct Timeout {};
struct Event {};
struct Connection {};
struct Session {};
struct Clock {};
struct Node {};
struct Job {};
struct Scheduler {};
struct Options {};
struct Sleep {};
struct Alarm {};
struct Pages {};
struct Levels {};
struct Placement {};
struct Missed {};
struct Error {};

namespace {

TEST(Names, TheLibrarysNamesStandBesideAsiosAndEverydayOnes) {
  asio::io_context context;
  wheel_timer timer(context, milliseconds(1));
  bool fired = false;
  timer.async_wait([&](boost::system::error_code error) { fired = !error; });
  context.run();
  EXPECT_TRUE(fired);
  const Task task;
  EXPECT_EQ(task.number, 7);
  [[maybe_unused]] const Executor executor;
  [[maybe_unused]] const Timer own_timer;
  [[maybe_unused]] const Timeout timeout;
  [[maybe_unused]] const Event event;
  [[maybe_unused]] const Connection connection;
  [[maybe_unused]] const Session session;
  [[maybe_unused]] const Clock clock;
  [[maybe_unused]] const Node node;
  [[maybe_unused]] const Job job;
  [[maybe_unused]] const Scheduler scheduler;
  [[maybe_unused]] const Options options;
  [[maybe_unused]] const Sleep sleep;
  [[maybe_unused]] const Alarm alarm;
  [[maybe_unused]] const Pages pages;
  [[maybe_unused]] const Levels levels;
  [[maybe_unused]] const Placement placement;
  [[maybe_unused]] const Missed missed;
  [[maybe_unused]] const Error error;
}

}  // namespace
