// Which connections the watch finds, and when, on virtual time.

#include "server/net/stall_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace carillon::server {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMs = 1'000'000;  // ns
constexpr std::uint64_t kSecond = 1'000'000'000;

struct Client : Watched {
  Awaits what = Awaits::kRest;
  bool is_alive = false;   // shows life without a call of active()
  std::uint64_t last = 0;  // ns, the time of its last active()

  Awaits awaits() const override { return what; }
  bool shows_life() override { return is_alive; }
};

class StallWatchTest : public ::testing::Test {
 protected:
  std::uint64_t now_ = 5 * kSecond + 300;  // ns
  std::vector<Watched*> found_;

  StallWatch watching(milliseconds stall, milliseconds idle) {
    return StallWatch({.stall = stall, .idle = idle}, 1'000, [this] { return now_; });
  }

  void active(StallWatch& watch, Client& client, Awaits what) {
    client.what = what;
    client.last = now_;
    watch.active(client);
  }

  void look(StallWatch& watch) {
    watch.look([this](Watched& client, Awaits) { found_.push_back(&client); });
  }

  // Sleeps and looks as the server does, at each next_wakeup(). Returns how often it woke.
  int live_until(StallWatch& watch, std::uint64_t until) {
    int wakeups = 0;
    for (auto next = watch.next_wakeup(); next && *next <= until; next = watch.next_wakeup()) {
      now_ = std::max(now_, *next);
      look(watch);
      ++wakeups;
    }
    now_ = until;
    return wakeups;
  }

  // Expects that the client is found not before `due`, and at most a millisecond after it.
  void expect_found_at(StallWatch& watch, Client& client, std::uint64_t due) {
    live_until(watch, due - 1);
    EXPECT_TRUE(found_.empty());
    live_until(watch, due + kMs);
    EXPECT_EQ(found_, std::vector<Watched*>{&client});
  }
};

TEST_F(StallWatchTest, FindsAStalledClientAtMostAMillisecondAfterItsTimeOut) {
  for (const Awaits what : {Awaits::kRest, Awaits::kReading}) {
    StallWatch watch = watching(seconds(60), hours(1));
    Client client;
    const std::uint64_t start = now_;
    active(watch, client, what);
    expect_found_at(watch, client, start + 60 * kSecond);
    EXPECT_FALSE(watch.next_wakeup());
    found_.clear();
  }
}

TEST_F(StallWatchTest, FindsNothingByItself) {
  StallWatch watch = watching(seconds(60), seconds(0));
  Client client;
  const std::uint64_t start = now_;
  active(watch, client, Awaits::kRest);
  now_ = start + 100 * kSecond;  // nobody looked
  EXPECT_LE(*watch.next_wakeup(), now_);
  look(watch);
  EXPECT_EQ(found_.size(), 1U);
}

TEST_F(StallWatchTest, ASlowButSteadyClientIsNeverFound) {
  StallWatch watch = watching(seconds(60), seconds(0));
  Client client;
  for (int byte = 0; byte < 100; ++byte) {
    active(watch, client, Awaits::kRest);
    live_until(watch, now_ + 60 * kSecond - 1);
  }
  EXPECT_TRUE(found_.empty());
  live_until(watch, now_ + 2 * kMs);
  EXPECT_EQ(found_.size(), 1U);
}

TEST_F(StallWatchTest, AClientThatMayWaitIsDroppedAndCausesNoWakeUp) {
  StallWatch watch = watching(seconds(60), seconds(0));
  Client waits;
  Client rests;
  active(watch, waits, Awaits::kNothing);
  active(watch, rests, Awaits::kCommand);
  EXPECT_FALSE(watch.next_wakeup());

  active(watch, waits, Awaits::kRest);  // half a command
  active(watch, rests, Awaits::kRest);
  active(watch, waits, Awaits::kNothing);  // the other half
  active(watch, rests, Awaits::kCommand);
  EXPECT_LE(live_until(watch, now_ + 61 * kSecond), 4);
  EXPECT_EQ(live_until(watch, now_ + 86'400 * kSecond), 0);
  EXPECT_TRUE(found_.empty());
}

TEST_F(StallWatchTest, FindsAnIdleClientIfThereIsAnIdleTimeOut) {
  StallWatch watch = watching(seconds(0), seconds(30));
  Client client;
  const std::uint64_t start = now_;
  active(watch, client, Awaits::kCommand);
  expect_found_at(watch, client, start + 30 * kSecond);
}

TEST_F(StallWatchTest, TheBeginOfACommandStartsTheShorterTimeOut) {
  StallWatch watch = watching(seconds(2), hours(1));
  Client client;
  active(watch, client, Awaits::kCommand);
  live_until(watch, now_ + 1'000 * kSecond);
  const std::uint64_t begun = now_;
  active(watch, client, Awaits::kRest);
  expect_found_at(watch, client, begun + 2 * kSecond);
}

TEST_F(StallWatchTest, TheEndOfACommandStartsTheLongerTimeOut) {
  StallWatch watch = watching(seconds(2), seconds(30));
  Client client;
  active(watch, client, Awaits::kRest);
  live_until(watch, now_ + kSecond);
  const std::uint64_t ended = now_;
  active(watch, client, Awaits::kCommand);
  expect_found_at(watch, client, ended + 30 * kSecond);
}

TEST_F(StallWatchTest, AnotherSignOfLifeStartsTheTimeOutAnew) {
  StallWatch watch = watching(seconds(60), seconds(0));
  Client client;
  const std::uint64_t start = now_;
  active(watch, client, Awaits::kReading);
  client.is_alive = true;
  live_until(watch, start + 61 * kSecond);
  client.is_alive = false;
  live_until(watch, start + 120 * kSecond - 1);
  EXPECT_TRUE(found_.empty());
  live_until(watch, start + 120 * kSecond + 4 * kMs);
  EXPECT_EQ(found_.size(), 1U);
}

TEST_F(StallWatchTest, AForgottenClientIsNotFoundEvenIfForgottenDuringALook) {
  StallWatch watch = watching(seconds(60), seconds(0));
  std::array<Client, 3> clients;
  for (Client& client : clients) active(watch, client, Awaits::kRest);
  watch.forget(clients[0]);
  watch.forget(clients[0]);
  now_ += 61 * kSecond;
  watch.look([&](Watched& client, Awaits) {
    found_.push_back(&client);
    for (Client& each : clients) watch.forget(each);
  });
  EXPECT_EQ(found_.size(), 1U);
  EXPECT_FALSE(watch.next_wakeup());
}

TEST_F(StallWatchTest, AThousandAtOnceAreFoundInSeveralLooks) {
  StallWatch watch = watching(seconds(60), seconds(0));
  std::vector<Client> clients(1'000);
  for (Client& client : clients) active(watch, client, Awaits::kRest);
  now_ += 61 * kSecond;
  look(watch);
  EXPECT_EQ(found_.size(), 16U);
  EXPECT_LE(*watch.next_wakeup(), now_);
  live_until(watch, now_);
  EXPECT_EQ(found_.size(), 1'000U);
}

TEST_F(StallWatchTest, ZeroIsNever) {
  StallWatch watch = watching(seconds(0), seconds(0));
  Client client;
  for (const Awaits what : {Awaits::kNothing, Awaits::kRest, Awaits::kReading, Awaits::kCommand})
    active(watch, client, what);
  EXPECT_FALSE(watch.next_wakeup());
}

TEST_F(StallWatchTest, AClientThatShowsNoTokenHasTheShorterTimeOut) {
  for (const auto& [stall, idle, expected] :
       {std::array{60, 0, 60}, std::array{60, 5, 5}, std::array{5, 60, 5}, std::array{0, 7, 7}}) {
    StallWatch watch = watching(seconds(stall), seconds(idle));
    Client client;
    active(watch, client, Awaits::kToken);
    const std::uint64_t end = now_ + static_cast<std::uint64_t>(expected) * kSecond;
    live_until(watch, end - kMs);
    EXPECT_TRUE(found_.empty());
    live_until(watch, end + kMs);
    EXPECT_EQ(found_.size(), 1u);
    found_.clear();
  }
}

TEST_F(StallWatchTest, ATimeOutOutOfRangeIsRefused) {
  EXPECT_THROW(watching(milliseconds(-1), milliseconds(0)), std::invalid_argument);
  EXPECT_THROW(watching(milliseconds(0), milliseconds(std::int64_t{1} << 38)),
               std::invalid_argument);
}

// The reference is a list of each client's last sign of life.
TEST_F(StallWatchTest, RandomHistoriesAreJudgedAsByAList) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t stall = 1 + random() % 3'000;
    const std::uint64_t idle = random() % 2 == 0 ? 0 : 1 + random() % 3'000;
    StallWatch watch = watching(milliseconds(stall), milliseconds(idle));
    std::vector<Client> clients(50);
    for (Client& client : clients) active(watch, client, Awaits::kNothing);

    const auto over_at = [&](const Client& client) -> std::optional<std::uint64_t> {
      // In ms.
      const std::uint64_t limit = client.what == Awaits::kNothing   ? 0
                                  : client.what == Awaits::kCommand ? idle
                                                                    : stall;
      if (limit == 0) return std::nullopt;
      return (client.last + kMs - 1) / kMs * kMs + limit * kMs;
    };
    const auto look_and_compare = [&] {
      watch.look([&](Watched& watched, Awaits what) {
        auto& client = static_cast<Client&>(watched);
        ASSERT_EQ(what, client.what);
        ASSERT_LE(over_at(client).value_or(UINT64_MAX), now_) << "early";
        client.what = Awaits::kNothing;
      });
      for (const Client& client : clients)
        ASSERT_GT(over_at(client).value_or(UINT64_MAX), now_) << "late";
    };

    for (int step = 0; step < 2'000; ++step) {
      const std::uint64_t event_at = now_ + random() % (50 * kMs);
      for (auto next = watch.next_wakeup(); next && *next <= event_at; next = watch.next_wakeup()) {
        now_ = std::max(now_, *next);
        ASSERT_NO_FATAL_FAILURE(look_and_compare());
      }
      now_ = event_at;
      active(watch, clients[random() % clients.size()], static_cast<Awaits>(random() % 4));
    }
    for (Client& client : clients) watch.forget(client);
  }
}

}  // namespace
}  // namespace carillon::server
