// The log has a line when jobs stay on disk for want of room, and none before.

#include "server/loop_warnings.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "carillon/queue/memory_store.h"

namespace carillon::server {
namespace {

class MemoryWarningsTest : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
  }
  void TearDown() override { spdlog::set_default_logger(before_); }

  void put(int jobs) {
    for (int n = 0; n < jobs; ++n) engine_.put(client_, now_, {}, "x");
  }
  // Returns the number of lines in the log, a second later.
  std::ptrdiff_t lines() {
    now_.utc_ns += 1'000'000'000;
    now_.mono_ns += 1'000'000'000;
    shares_.observe(now_.mono_ns, engine_);
    const std::string log = log_.str();
    return std::count(log.begin(), log.end(), '\n');
  }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream log_;
  const queue::EngineOptions options_{.max_loaded = 100};
  queue::Now now_{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 5'000'000'000};
  queue::MemoryStore store_;
  queue::Engine engine_{store_, options_, now_};
  queue::ClientId client_ = engine_.connect();
  MemoryWarnings shares_{options_};
};

TEST_F(MemoryWarningsTest, ALineSaysThatJobsWaitOnDiskWhenTheyDo) {
  put(50);
  EXPECT_EQ(lines(), 0) << "all of them are in memory";
  put(2);
  EXPECT_EQ(lines(), 1);
  EXPECT_NE(log_.str().find("50 ready and delayed jobs are in memory, of 100 at most"),
            std::string::npos)
      << log_.str();
  put(2);
  EXPECT_EQ(lines(), 1);
}

}  // namespace
}  // namespace carillon::server
