// The whole server on real sockets, with a store in memory: connections, signals, limits, and what
// happens when a sync fails.

#include "server/event_loop.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "running_loop.h"
#include "server/net/clock.h"

namespace carillon::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class EventLoopTest : public RunningLoop {};

constexpr std::string_view kPut = "put 0 0 60 5\r\nhello\r\n";
constexpr std::string_view kInserted = "INSERTED 1\r\n";
constexpr std::string_view kReserved = "RESERVED 1 5\r\nhello\r\n";

TEST_F(EventLoopTest, TcpAndUnixSocketsAreServedAlike) {
  start();
  Peer tcp(tcp_);
  Peer local({.host = {}, .port = 0, .path = path_});
  EXPECT_EQ(tcp.say(kPut, kInserted), kInserted);
  EXPECT_EQ(local.say("reserve\r\n", kReserved), kReserved);
}

TEST_F(EventLoopTest, AWaitingReserveGetsTheJobAnotherConnectionPuts) {
  start();
  Peer worker(tcp_);
  Peer producer(tcp_);
  worker.send("reserve\r\n");
  EXPECT_EQ(producer.say(kPut, kInserted), kInserted);
  EXPECT_EQ(worker.read(kReserved.size()), kReserved);
}

TEST_F(EventLoopTest, ADelayedJobComesNeitherEarlyNorMuchLater) {
  start();
  Peer peer(tcp_);
  const auto before = steady_clock::now();
  EXPECT_EQ(peer.say("put-ms 0 150 60000 5\r\nhello\r\n", kInserted), kInserted);
  EXPECT_EQ(peer.say("reserve\r\n", kReserved), kReserved);
  const auto took = steady_clock::now() - before;
  EXPECT_GE(took, milliseconds(150));
  EXPECT_LT(took, milliseconds(2'000));  // generous: the machine may be busy
}

// The wall clock was a day ahead when the store was written.
TEST_F(EventLoopTest, AWallClockThatWasSetIsLogged) {
  std::ostringstream log;
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  constexpr std::uint64_t kDay = 86'400'000'000'000;
  const queue::Now now = read_clocks();
  const auto wall_ns = static_cast<std::int64_t>(now.utc_ns - now.mono_ns);
  queue::Changes changes;
  changes.watermarks = queue::Watermarks{.time = (now.utc_ns + kDay) / 1'000'000,
                                         .wall_ns = wall_ns + static_cast<std::int64_t>(kDay),
                                         .steady_ns = wall_ns,
                                         .boot_lead = 86'400'000,
                                         .up_ns = wall_ns};
  store_.append(changes);
  start();
  terminate();
  spdlog::set_default_logger(logger);
  EXPECT_NE(log.str().find("the wall clock was set back by 86"), std::string::npos) << log.str();
}

TEST_F(EventLoopTest, QuitClosesTheConnection) {
  start();
  Peer peer(tcp_);
  EXPECT_EQ(peer.say("use a\r\nquit\r\nuse b\r\n", "USING a\r\n"), "USING a\r\n");
  EXPECT_TRUE(peer.at_end());
}

TEST_F(EventLoopTest, AHalfClosedConnectionIsAnsweredAndClosed) {
  start();
  Peer peer(tcp_);
  peer.send("reserve\r\nuse a\r\nput 0 0 60 5\r\nhel");
  peer.end_input();
  EXPECT_EQ(peer.read(100), "TIMED_OUT\r\nUSING a\r\n");
}

TEST_F(EventLoopTest, AHalfCloseIsNoticedBehindUnreadBytes) {
  start();
  Peer peer(tcp_);
  std::string bytes = "reserve\r\n";
  std::string expected = "TIMED_OUT\r\n";
  for (int i = 0; i < 2; ++i) {
    bytes += "put 0 0 60 20000\r\n" + std::string(20'000, 'b') + "\r\n";
    expected += "INSERTED " + std::to_string(i + 1) + "\r\n";
  }
  peer.send(bytes);
  peer.end_input();
  EXPECT_EQ(peer.read(10'000), expected);
}

TEST_F(EventLoopTest, AResetGivesTheJobsBack) {
  start();
  Peer worker(tcp_);
  Peer other(tcp_);
  worker.send(kPut);
  EXPECT_EQ(worker.say("reserve\r\n", std::string(kInserted) + std::string(kReserved)),
            std::string(kInserted) + std::string(kReserved));
  other.send("reserve\r\n");
  worker.reset();
  EXPECT_EQ(other.read(kReserved.size()), kReserved);
}

// A client is gone when its reply is sent. Its job is for the one that waits, and not only when the
// ttr of 5 s wakes the loop.
TEST_F(EventLoopTest, AFailedWriteGivesTheJobAtOnceToTheOneThatWaits) {
  start();
  auto holder = std::make_unique<Peer>(tcp_);
  holder->send("put 0 0 5 5\r\nhello\r\nreserve\r\n");
  EXPECT_EQ(holder->read_line(), kInserted);
  EXPECT_EQ(holder->read(kReserved.size()), kReserved);
  for (int i = 0; i < 10; ++i) {
    auto next = std::make_unique<Peer>(tcp_);
    EXPECT_EQ(next->say("use a\r\nreserve\r\n", "USING a\r\n"), "USING a\r\n");
    const auto before = steady_clock::now();
    holder->send("stats\r\n");
    holder->reset();
    ASSERT_EQ(next->read(kReserved.size()), kReserved);
    ASSERT_LT(steady_clock::now() - before, milliseconds(2'000));
    holder = std::move(next);
  }
}

TEST_F(EventLoopTest, AClientThatReadsNoRepliesIsNotReadAndOthersAreServed) {
  start();
  Peer lazy(tcp_);
  const std::string body(60'000, 'b');
  lazy.send("put 0 0 60 60000\r\n" + body + "\r\n");
  constexpr int kPeeks = 2'000;  // 120 MB of replies
  std::string peeks;
  for (int i = 0; i < kPeeks; ++i) peeks += "peek 1\r\n";
  lazy.send(peeks);

  Peer other(tcp_);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(other.say("use a\r\n", "USING a\r\n"), "USING a\r\n");

  EXPECT_EQ(lazy.read(kInserted.size()), kInserted);
  const std::string found = "FOUND 1 60000\r\n" + body + "\r\n";
  int right = 0;
  for (int i = 0; i < kPeeks; ++i) right += lazy.read(found.size()) == found ? 1 : 0;
  EXPECT_EQ(right, kPeeks);
}

TEST_F(EventLoopTest, ConnectionsBeyondTheLimitAreRefusedUntilOthersEnd) {
  ServerOptions two;
  two.max_connections = 2;
  start(two);
  Peer first(tcp_);
  {
    Peer second(tcp_);
    EXPECT_EQ(first.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
    EXPECT_EQ(second.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
    Peer third(tcp_);
    EXPECT_EQ(third.read(100), "OUT_OF_MEMORY\r\n");
  }
  // The server sees the end of the second connection at some moment from here on.
  for (int i = 0; i < 1'000; ++i) {
    Peer next(tcp_);
    if (next.say("use a\r\n", "USING a\r\n") == "USING a\r\n") return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  FAIL() << "still refused";
}

TEST_F(EventLoopTest, SigtermAnswersCommandsInFlightAndEndsWith0) {
  start();
  Peer peer(tcp_);
  Peer waiting(tcp_);
  waiting.send("reserve-with-timeout 100\r\n");
  EXPECT_EQ(peer.say("use a\r\nput 0 0 60 5\r\nhello\r\n", "USING a\r\nINSERTED 1\r\n"),
            "USING a\r\nINSERTED 1\r\n");
  EXPECT_EQ(terminate(), End::kSignal);
  EXPECT_TRUE(peer.at_end());
  EXPECT_TRUE(waiting.at_end());
}

TEST_F(EventLoopTest, AfterSigusr1EveryPutIsRefused) {
  start();
  Peer peer(tcp_);
  EXPECT_EQ(peer.say(kPut, kInserted), kInserted);
  ::kill(::getpid(), SIGUSR1);
  std::string answer = "INSERTED";
  for (int i = 0; i < 10'000 && answer.starts_with("INSERTED"); ++i) {
    peer.send(kPut);
    answer = peer.read_line();
  }
  EXPECT_EQ(answer, "DRAINING\r\n");
  EXPECT_EQ(peer.say("delete 1\r\n", "DELETED\r\n"), "DELETED\r\n");
}

TEST_F(EventLoopTest, AfterAFailedSyncUndurableCommandsAreRefusedAndTheLoopEndsWith1) {
  start();
  Peer peer(tcp_);
  EXPECT_EQ(peer.say(kPut, kInserted), kInserted);
  store_.syncs_fail = true;
  peer.send("use a\r\nput 0 0 60 5\r\nhello\r\nlist-tube-used\r\n");
  EXPECT_EQ(end(), End::kStoreFailed);
  EXPECT_EQ(peer.read(100), "USING a\r\nINTERNAL_ERROR\r\nINTERNAL_ERROR\r\n");
}

TEST_F(EventLoopTest, AfterAFailedSyncAlsoTheLastOfManyCommandsIsAnswered) {
  start();
  Peer peer({.host = {}, .port = 0, .path = path_});
  for (int i = 0; i < 5; ++i) {  // slow syncs, so that another thread does the next one
    store_.syncs_wait = true;
    peer.send(kPut);
    std::this_thread::sleep_for(milliseconds(10));
    store_.syncs_wait = false;
    EXPECT_TRUE(peer.read_line().starts_with("INSERTED"));
  }
  constexpr std::size_t kCommands = 50'000;  // their answers are more than the socket takes at once
  std::string uses;
  for (std::size_t i = 0; i < kCommands; ++i) uses += "use a\r\n";
  store_.syncs_wait = true;
  store_.syncs_fail = true;
  peer.send(std::string(kPut) + uses);
  Peer other(tcp_);
  std::string stats;
  const std::string all_read = "cmd-use: " + std::to_string(kCommands);
  for (int i = 0; i < 10'000 && stats.find(all_read) == std::string::npos; ++i) {
    other.send("stats\r\n");
    stats.clear();
    for (std::string line = "-"; line != "\r\n" && !line.empty(); stats += line)
      line = other.read_line();
  }
  store_.syncs_wait = false;
  constexpr std::size_t kBytes = (1 + kCommands) * std::string_view("INTERNAL_ERROR\r\n").size();
  EXPECT_EQ(peer.read(kBytes).size(), kBytes);
  EXPECT_EQ(end(), End::kStoreFailed);
}

TEST_F(EventLoopTest, AStoreThatFailsInTheBackgroundEndsTheLoopWith1) {
  start();
  Peer peer(tcp_);
  EXPECT_EQ(peer.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
  store_.fail();
  EXPECT_EQ(end(), End::kStoreFailed);  // nobody has sent a command
  EXPECT_TRUE(peer.at_end());
}

TEST_F(EventLoopTest, AStoreThatFailsAtSigtermEndsTheLoopWith1) {
  start();
  Peer peer(tcp_);
  EXPECT_EQ(peer.say(kPut, kInserted), kInserted);
  store_.syncs_fail = true;
  peer.send(kPut);
  EXPECT_EQ(terminate(), End::kStoreFailed);
}

}  // namespace
}  // namespace carillon::server
