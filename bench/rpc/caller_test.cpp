// How calls end: with both designs of deadlines, on virtual time; and with timers and replies that
// race.
#include "caller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"

namespace rpc {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A caller, the requests that it sent, and how its calls ended.
class CallerTest : public ::testing::TestWithParam<bool> {
 protected:
  CallerTest() { make_caller({}); }

  void make_caller(CallerOptions options) {
    caller_.reset();
    if (GetParam()) {
      deadlines_ = std::make_unique<TimerDeadlines>(clock_);
    } else {
      deadlines_ = std::make_unique<ScanDeadlines>(calls_, 0ms, clock_);
    }
    options.on_timeout = [this](nanoseconds late) { lateness_.push_back(late); };
    const auto send = [this](std::string_view frame) {
      FrameReader().feed(frame, [&](std::uint64_t id, std::string_view) {
        sent_.emplace_back(id, clock_->now());
      });
    };
    caller_ = std::make_unique<Caller>(calls_, *deadlines_, send, options);
  }

  void call(nanoseconds timeout) {
    caller_->call(Method::kEcho, "hello", timeout,
                  [this](const Outcome& outcome) { ends_.push_back(outcome); });
  }

  // Lets time pass; with ScanDeadlines it scans every 30 ms, as the thread of that design does.
  void pass(nanoseconds time) {
    auto* scan = dynamic_cast<ScanDeadlines*>(deadlines_.get());
    if (scan == nullptr) return clock_->advance(time);
    for (nanoseconds step; time > 0ns; time -= step) {
      step = std::min<nanoseconds>(time, ScanDeadlines::kEvery);
      clock_->advance(step);
      scan->scan();
    }
  }

  std::uint64_t id(std::size_t attempt) const { return sent_.at(attempt).first; }
  nanoseconds between(std::size_t a, std::size_t b) const {
    return sent_.at(b).second - sent_.at(a).second;
  }

  const std::shared_ptr<carillon::ManualClock> clock_ = std::make_shared<carillon::ManualClock>();
  PendingCalls calls_;
  std::vector<std::pair<std::uint64_t, carillon::SteadyTime>> sent_;
  std::vector<Outcome> ends_;
  std::vector<nanoseconds> lateness_;
  std::unique_ptr<Deadlines> deadlines_;
  std::unique_ptr<Caller> caller_;
};

INSTANTIATE_TEST_SUITE_P(Designs, CallerTest, ::testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "Timers" : "Scan"; });

TEST_P(CallerTest, AReplyInTimeEndsTheCall) {
  call(1s);
  pass(900ms);
  caller_->on_reply(id(0), "world");
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].answered);
  EXPECT_EQ(ends_[0].text, "world");
  EXPECT_EQ(ends_[0].attempts, 1);
  pass(60s);
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_EQ(ends_.size(), 1U);
}

TEST_P(CallerTest, ALateCallIsSentAgainAfterAPauseWithAnotherId) {
  call(1s);
  pass(2s);
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_NE(id(0), id(1));
  EXPECT_GE(between(0, 1), 1050ms);
  // Two deadlines, each late by at most a tick, or the time between two scans.
  EXPECT_LE(between(0, 1), 1100ms + (GetParam() ? 2ms : 60ms));
  caller_->on_reply(id(1), "world");
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].answered);
  EXPECT_EQ(ends_[0].attempts, 2);
}

TEST_P(CallerTest, ALateReplyIsDropped) {
  call(1s);
  pass(1001ms + ScanDeadlines::kEvery);
  caller_->on_reply(id(0), "during the pause");
  pass(500ms);
  caller_->on_reply(id(0), "during the second attempt");
  EXPECT_TRUE(ends_.empty());
  caller_->on_reply(id(1), "in time");
  caller_->on_reply(id(1), "twice");
  caller_->on_reply(id(0), "after the end");
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].text, "in time");
  EXPECT_EQ(caller_->counts().late, 4U);
  EXPECT_EQ(caller_->counts().answered, 1U);
}

TEST_P(CallerTest, AReplyToAnIdThatWasNeverSentIsDropped) {
  call(1s);
  pass(1001ms + ScanDeadlines::kEvery);
  caller_->on_reply(id(0) + 1, "to the id of the pause");
  pass(500ms);
  EXPECT_EQ(sent_.size(), 2U);
  EXPECT_TRUE(ends_.empty());
}

TEST_P(CallerTest, ACallFailsAfterItsLastAttempt) {
  make_caller({.attempts = 4, .first_pause = 100ms, .longest_pause = 150ms});
  call(1s);
  pass(60s);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_FALSE(ends_[0].answered);
  EXPECT_EQ(ends_[0].attempts, 4);
  EXPECT_EQ(ends_[0].text, "no reply in time");
  ASSERT_EQ(sent_.size(), 4U);
  const milliseconds late = GetParam() ? 2ms : 60ms;
  EXPECT_GE(between(0, 1), 1050ms);
  EXPECT_LE(between(0, 1), 1100ms + late);
  EXPECT_GE(between(1, 2), 1075ms);
  EXPECT_LE(between(1, 2), 1150ms + late);
  EXPECT_GE(between(2, 3), 1075ms);
  EXPECT_LE(between(2, 3), 1150ms + late);
  EXPECT_EQ(caller_->counts().timed_out, 4U);
}

TEST_P(CallerTest, CallsThatTimeOutTogetherAreNotSentAgainTogether) {
  for (int i = 0; i < 100; ++i) call(1s);
  pass(2s);
  ASSERT_EQ(sent_.size(), 200U);
  std::vector<nanoseconds> times;
  for (std::size_t i = 100; i < 200; ++i) times.push_back(sent_[i].second.time_since_epoch());
  EXPECT_LE(std::count(times.begin(), times.end(), times.front()), GetParam() ? 20 : 90);
}

TEST_P(CallerTest, TimeoutsAreNeverEarly) {
  for (int i = 1; i <= 1000; ++i) call(i * 1ms);
  pass(30s);
  EXPECT_EQ(ends_.size(), 1000U);
  ASSERT_EQ(lateness_.size(), 3000U);
  EXPECT_GE(*std::min_element(lateness_.begin(), lateness_.end()), 0ns);
  EXPECT_LE(*std::max_element(lateness_.begin(), lateness_.end()), GetParam() ? 1ms : 30ms);
}

TEST_P(CallerTest, WhenTheConnectionEndsAllCallsFailAtOnce) {
  call(1s);
  pass(1001ms + ScanDeadlines::kEvery);  // this call is in its pause
  call(1s);
  caller_->on_disconnect("gone");
  ASSERT_EQ(ends_.size(), 2U);
  call(1s);
  ASSERT_EQ(ends_.size(), 3U);
  for (const Outcome& end : ends_) {
    EXPECT_FALSE(end.answered);
    EXPECT_EQ(end.text, "gone");
  }
  pass(60s);
  EXPECT_EQ(ends_.size(), 3U);
}

TEST(TimerDeadlinesTest, AReplyCancelsTheTimer) {
  const auto clock = std::make_shared<carillon::ManualClock>();
  PendingCalls calls;
  TimerDeadlines deadlines(clock);
  std::vector<std::uint64_t> ids;
  Caller caller(calls, deadlines, [&](std::string_view frame) {
    FrameReader().feed(frame, [&](std::uint64_t id, std::string_view) { ids.push_back(id); });
  });
  clock->settle();
  for (int i = 0; i < 100; ++i) caller.call(Method::kEcho, "hello", 1s, [](const Outcome&) {});
  EXPECT_EQ(deadlines.stats().pending, 100U);
  for (const std::uint64_t id : ids) caller.on_reply(id, "world");
  EXPECT_EQ(deadlines.stats().pending, 0U);
  EXPECT_EQ(deadlines.stats().cancelled, 100U);
}

TEST(FrameTest, FramesMayComeInAnyPieces) {
  const std::string both = make_request(7, Method::kEcho, "hello") + make_reply(8, "");
  for (std::size_t first = 0; first <= both.size(); ++first) {
    for (std::size_t second = first; second <= both.size(); ++second) {
      FrameReader reader;
      std::vector<std::pair<std::uint64_t, std::string>> frames;
      const auto keep = [&](std::uint64_t id, std::string_view rest) {
        frames.emplace_back(id, rest);
      };
      EXPECT_TRUE(reader.feed(both.substr(0, first), keep));
      EXPECT_TRUE(reader.feed(both.substr(first, second - first), keep));
      EXPECT_TRUE(reader.feed(both.substr(second), keep));
      ASSERT_EQ(frames.size(), 2U) << first << ", " << second;
      EXPECT_EQ(frames[0], std::make_pair(std::uint64_t{7}, std::string("Ehello")));
      EXPECT_EQ(frames[1], std::make_pair(std::uint64_t{8}, std::string()));
    }
  }
}

TEST(FrameTest, AFrameThatIsTooShortOrTooLongIsRefused) {
  const auto ignore = [](std::uint64_t, std::string_view) {};
  EXPECT_FALSE(FrameReader().feed(std::string("\0\0\0\7", 4), ignore));
  EXPECT_FALSE(FrameReader().feed(std::string("\0\1\0\1", 4), ignore));
}

// Replies come at about the moment of the time-out, on another thread. CARILLON_TRIALS=100 makes a
// hundred times as many trials.
class CallerRace : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Designs, CallerRace, ::testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "Timers" : "Scan"; });

TEST_P(CallerRace, RepliesVersusTimeouts_EachCallEndsOnce) {
  const char* times =
      std::getenv("CARILLON_TRIALS");  // NOLINT(concurrency-mt-unsafe): before any thread
  const std::size_t trials = 20'000U * (times == nullptr ? 1U : std::stoul(times));
  std::vector<std::atomic<std::uint64_t>> ids(trials);
  std::vector<carillon::SteadyTime> sent_at(trials);  // each is written before its id in `ids`
  std::vector<std::atomic<int>> ends(trials);
  std::atomic<std::size_t> ended{0};

  PendingCalls calls;
  std::unique_ptr<Deadlines> deadlines;
  if (GetParam()) {
    deadlines = std::make_unique<TimerDeadlines>();
  } else {
    deadlines = std::make_unique<ScanDeadlines>(calls, 1ms);
  }
  std::size_t sending = 0;  // each call has one attempt, so only this thread sends
  Caller caller(calls, *deadlines,
                [&](std::string_view frame) {
                  sent_at[sending] = deadlines->now();
                  FrameReader().feed(
                      frame, [&](std::uint64_t id, std::string_view) { ids[sending] = id; });
                },
                {.attempts = 1});

  // The time-out of a call comes 0 to 3 ms after sending, including its tick, or the time until the
  // next scan. The reply comes after 1.5 ms.
  std::thread replies([&] {
    for (std::size_t i = 0; i < trials; ++i) {
      while (ids[i] == 0 || deadlines->now() < sent_at[i] + 1'500us) std::this_thread::yield();
      caller.on_reply(ids[i], "");
    }
  });
  std::mt19937_64 random(1);
  for (; sending < trials; ++sending) {
    caller.call(Method::kEcho, "", nanoseconds(random() % 2'000'000),
                [&, i = sending](const Outcome&) {
                  ++ends[i];
                  ++ended;
                });
  }
  replies.join();
  while (ended < trials) std::this_thread::yield();
  EXPECT_EQ(std::count(ends.begin(), ends.end(), 1), static_cast<std::ptrdiff_t>(trials));
  const CallerCounts counts = caller.counts();
  EXPECT_EQ(counts.started, trials);
  EXPECT_EQ(counts.answered + counts.failed, trials);
  EXPECT_EQ(counts.answered + counts.late, trials);  // one reply to each call
  EXPECT_EQ(counts.failed, counts.timed_out);
  RecordProperty("answered", static_cast<int>(counts.answered));
  RecordProperty("failed", static_cast<int>(counts.failed));
}

}  // namespace
}  // namespace rpc
