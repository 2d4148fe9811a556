// The log tells what schedules skip, and drowns in none of it.

#include "server/loop_warnings.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
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
  void turn(std::uint64_t ns) {
    now_.utc_ns += ns;
    now_.mono_ns += ns;
    do {
      engine_.advance(now_);
      log_.observe(engine_, now_.mono_ns);
    } while (engine_.next_wakeup().value_or(UINT64_MAX) <= now_.mono_ns);
  }
  // Returns the lines of the next seconds.
  std::vector<std::string> pass(int seconds) {
    written_.str({});
    for (int second = 0; second < seconds; ++second) turn(1'000'000'000);
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
  const std::vector<std::string> lines = pass(10);
  EXPECT_LE(lines.size(), 10U * 21U);
  EXPECT_GE(lines.size(), 8U * 21U);  // the first jobs do not overlap
}

TEST_F(ScheduleLogTest, AScheduleOfManyHasALineAMinuteToo) {
  for (int n = 0; n < 1'500; ++n) set("s" + std::to_string(n), 1'000);
  std::set<std::string> names;
  std::size_t lines = 0;
  for (const std::string& line : pass(60)) {
    if (line.starts_with("schedules: ")) continue;
    names.insert(line.substr(0, line.find(": ")));
    ++lines;
  }
  EXPECT_EQ(names.size(), lines);
  EXPECT_GT(lines, 1'100U);
}

TEST_F(ScheduleLogTest, ALineThatTheOthersOfItsSecondHoldBackKeepsItsCount) {
  set("last", 1'000);
  EXPECT_EQ(pass(2).size(), 1U);
  EXPECT_EQ(pass(57).size(), 0U);
  // These come half a second before it. They skip for the first time when it may have a line again.
  turn(500'000'000);
  for (int n = 0; n < 30; ++n) set("s" + std::to_string(n), 1'000);
  turn(500'000'000);
  std::string found;
  for (const std::string& line : pass(4))
    if (line.starts_with("schedule last: ")) found = line;
  EXPECT_NE(found.find(" and 59 before it"), std::string::npos) << found;
}

TEST_F(ScheduleLogTest, EachOccurrenceIsCounted) {
  for (int n = 0; n < 30; ++n) set("s" + std::to_string(n), 1'000);
  pass(1);  // the jobs with which the next ones overlap
  std::uint64_t counted = 0;
  for (const std::string& line : pass(122)) {
    ++counted;
    if (const auto at = line.find(" and "); at != std::string::npos)
      counted += std::stoull(line.substr(at + 5));
    if (line.starts_with("schedules: ")) counted += std::stoull(line.substr(11)) - 1;
  }
  EXPECT_EQ(counted, 122U * 30U - 20U);  // the 20 that had a line a second before
}

}  // namespace
}  // namespace carillon::server
