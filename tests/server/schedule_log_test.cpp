// The log tells what schedules skip, and drowns in none of it.

#include "server/schedule_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "carillon/queue/memory_store.h"

namespace carillon::server {
namespace {

class ScheduleLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto logger = std::make_shared<spdlog::logger>(
        "", std::make_shared<spdlog::sinks::ostream_sink_mt>(written_));
    logger->set_pattern("%v");
    spdlog::set_default_logger(std::move(logger));
  }
  void TearDown() override { spdlog::set_default_logger(before_); }

  void set(const std::string& name, queue::Millis every) {
    engine_.set_schedule(now_, name,
                         {.body = "x", .every = every, .overlap = queue::Overlap::kSkip});
  }
  // Returns the lines of so many seconds.
  std::vector<std::string> pass(int seconds) {
    written_.str({});
    for (int second = 0; second < seconds; ++second) {
      now_.utc_ns += 1'000'000'000;
      now_.mono_ns += 1'000'000'000;
      engine_.advance(now_);
      log_.observe(engine_, now_.mono_ns);
    }
    std::vector<std::string> lines;
    std::istringstream in(written_.str());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream written_;
  queue::Now now_{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 5'000'000'000};
  queue::MemoryStore store_;
  queue::Engine engine_{store_, {}, now_};
  ScheduleLog log_;
};

TEST_F(ScheduleLogTest, AnOverlapIsLoggedOnceAMinuteWithHowManyThereWere) {
  set("s", 1'000);
  EXPECT_EQ(pass(3), std::vector<std::string>{
                         "schedule s: skipped 2023-11-14T22:13:22.000Z, as the job before is still "
                         "there"});
  const std::vector<std::string> more = pass(120);
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(more.front(),
            "schedule s: skipped 2023-11-14T22:14:22.000Z and 59 before it, as the job before is "
            "still there");
}

TEST_F(ScheduleLogTest, EachScheduleHasALineOfItsOwn) {
  for (const char* const name : {"a", "b", "c"}) set(name, 1'000);
  EXPECT_EQ(pass(59).size(), 3U);
}

TEST_F(ScheduleLogTest, ManySchedulesHaveLittleOfTheLog) {
  for (int n = 0; n < 1'500; ++n) set("s" + std::to_string(n), 1'000);
  EXPECT_LE(pass(10).size(), 10U * 21U);
}

}  // namespace
}  // namespace carillon::server
