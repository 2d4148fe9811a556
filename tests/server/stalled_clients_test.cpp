// Clients that stall, on real sockets: which connections are closed, which are not, and none early.
// Lower bounds are exact. Upper bounds are generous, because other tests run on the same machine.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "running_loop.h"
#include "token_file.h"

namespace carillon::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kShort{200};
// Longer than a busy machine keeps a thread of the test waiting.
constexpr milliseconds kLong{1'500};
constexpr milliseconds kLate{10'000};

constexpr std::string_view kPut = "put 0 0 60 5\r\nhello\r\n";
constexpr std::string_view kInserted = "INSERTED 1\r\n";
constexpr std::string_view kReserved = "RESERVED 1 5\r\nhello\r\n";
constexpr std::string_view kUsing = "USING a\r\n";
constexpr std::string_view kAuthenticated = "AUTHENTICATED\r\n";
constexpr std::size_t kBody = 60'000;

class StalledClients : public RunningLoop {
 protected:
  void start_with(milliseconds stall, milliseconds idle) {
    ServerOptions options;
    options.stall_timeout = stall;
    options.idle_timeout = idle;
    start(options);
  }

  // Expects that the connection is closed between time-out and time-out + kLate after `since`.
  static void expect_closed(Peer& peer, steady_clock::time_point since, milliseconds timeout) {
    EXPECT_TRUE(peer.at_end());
    const auto took = steady_clock::now() - since;
    EXPECT_GE(took, timeout);
    EXPECT_LT(took, timeout + kLate);
  }

  std::string stats_line(std::string_view name) {
    Peer peer(tcp_);
    peer.send("stats\r\nquit\r\n");
    const std::string all = peer.read(100'000);
    const std::size_t at = all.find(std::string(name) + ": ");
    return at == std::string::npos ? "" : all.substr(at, all.find('\n', at) - at);
  }

  // Puts a large job, and asks to see it `peeks` times.
  static void ask_for_much(Peer& peer, std::size_t peeks) {
    peer.send("put 0 0 60 " + std::to_string(kBody) + "\r\n" + std::string(kBody, 'b') + "\r\n");
    EXPECT_TRUE(peer.read_line().starts_with("INSERTED "));
    std::string bytes;
    for (std::size_t i = 0; i < peeks; ++i) bytes += "peek 1\r\n";
    peer.send(bytes);
  }
};

TEST_F(StalledClients, HalfACommandOrHalfABodyClosesTheConnection) {
  start_with(kShort, milliseconds(0));
  for (const std::string_view part :
       {std::string_view("reser"), std::string_view("put 0 0 60 5\r\n"),
        std::string_view("put 0 0 60 5\r\nhel"), std::string_view("put 0 0 60 5\r\nhello"),
        std::string_view("put 0 0 60 100000\r\nswallowed")}) {
    Peer peer(tcp_);
    EXPECT_EQ(peer.say("use a\r\n", kUsing), kUsing);
    const auto before = steady_clock::now();
    peer.send(part);
    expect_closed(peer, before, kShort);
  }
  Peer too_long(tcp_);
  const auto before = steady_clock::now();
  too_long.send(std::string(300, 'z'));
  expect_closed(too_long, before, kShort);
  EXPECT_EQ(stats_line("connections-closed-stalled"), "connections-closed-stalled: 6");
  EXPECT_EQ(stats_line("connections-closed-idle"), "connections-closed-idle: 0");
}

// Clients without a token could keep all connections that the server has: with a byte now and then,
// too.
TEST_F(StalledClients, AClientThatShowsNoTokenDoesNotStay) {
  const TokenFile file(std::vector<TokenFile::Line>{{"secret", "work"}});
  Tokens tokens(file.path);
  ServerOptions options;
  options.stall_timeout = kShort;
  start(options, &tokens);

  Peer known(tcp_);
  EXPECT_EQ(known.say("auth secret\r\n", kAuthenticated), kAuthenticated);
  std::string refused;  // a whole command at least each 200 ms
  for (int n = 0; n < 150; ++n) refused += "use a\r\n";
  const auto before = steady_clock::now();
  Peer silent(tcp_);
  expect_closed(silent, before, kShort);
  for (const auto& [address, bytes] :
       {std::pair{tcp_, std::string("put 0 0 60 1000\r\n") + std::string(1'000, 'x')},
        std::pair{tcp_, refused},
        std::pair{http_, "GET /healthz HTTP/1.1\r\nX: " + std::string(1'000, 'x')}}) {
    const auto since = steady_clock::now();
    Peer drips(address);
    std::size_t sent = 0;
    for (; !drips.is_closed() && sent < bytes.size(); ++sent) {
      drips.send(std::string_view(bytes).substr(sent, 1));
      std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_LT(sent, bytes.size());
    EXPECT_GE(steady_clock::now() - since, kShort);
  }
  EXPECT_EQ(known.say("list-tube-used\r\n", "USING default\r\n"), "USING default\r\n");
}

TEST_F(StalledClients, ASlowButSteadyBodyIsTaken) {
  start_with(kLong, kLong);
  Peer peer(tcp_);
  peer.send("put 0 0 60 20\r\n");
  const auto before = steady_clock::now();
  for (const char byte : std::string(20, 'b') + "\r\n") {
    peer.send(std::string_view(&byte, 1));
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_GT(steady_clock::now() - before, kLong);
  EXPECT_EQ(peer.read(kInserted.size()), kInserted);
}

// However its bytes come. A byte may lie unread when the time is over: then it has the time again.
TEST_F(StalledClients, ALineOrAHeaderHasOneTimeOut) {
  start_with(kShort, milliseconds(0));
  for (const auto& [address, start, drip] :
       {std::tuple{tcp_, "use a\r\nput-job 5 key=", "k"}, std::tuple{tcp_, "", "z"},
        std::tuple{http_, "GET /healthz HTTP/1.1\r\nX: ", "x"},
        std::tuple{http_, "GET /healthz HTTP/1.1\r\n", "X: y\r\n"}}) {
    Peer peer(address);
    const auto before = steady_clock::now();
    peer.send(start);
    while (!peer.is_closed() && steady_clock::now() < before + kLate) {
      peer.send(drip);
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_TRUE(peer.is_closed()) << start;
    EXPECT_GE(steady_clock::now() - before, kShort);
  }
}

TEST_F(StalledClients, EachLineHasItsOwnTimeOut) {
  start_with(kLong, milliseconds(0));
  std::optional<Peer> peer;
  auto began = steady_clock::now();
  for (auto last = began; steady_clock::now() < began + 2 * kLong;) {
    const auto now = steady_clock::now();
    if (!peer || now > last + kLong / 2) {  // a busy machine has held this thread up: begin again
      peer.emplace(tcp_);
      peer->send("us");
      began = now;
    }
    last = now;
    // The end of a line, and the beginning of the next one.
    ASSERT_EQ(peer->say("e a\r\nus", kUsing), kUsing);
    std::this_thread::sleep_for(milliseconds(100));
  }
}

TEST_F(StalledClients, AClientThatReadsNoRepliesIsClosed) {
  start_with(kShort, milliseconds(0));
  Peer lazy(tcp_, 16 << 10);
  constexpr std::size_t kPeeks = 500;  // 30 MB
  const auto before = steady_clock::now();
  ask_for_much(lazy, kPeeks);
  while (stats_line("connections-closed-stalled") != "connections-closed-stalled: 1") {
    ASSERT_LT(steady_clock::now() - before, kLate);
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_GE(steady_clock::now() - before, kShort);
  EXPECT_LT(lazy.read(kPeeks * kBody).size(), kPeeks * kBody);
}

TEST_F(StalledClients, AClientThatReadsNoRepliesIsClosedEvenIfItReservesOrSendsOn) {
  ServerOptions options;
  options.stall_timeout = kLong;
  options.beanstalk.max_unsent = 1 << 30;  // the server goes on reading from it
  start(options);
  const auto before = steady_clock::now();
  Peer waits(tcp_, 16 << 10);
  ask_for_much(waits, 500);
  waits.send("watch b\r\nignore default\r\nreserve\r\n");
  Peer sends_on(tcp_, 16 << 10);
  ask_for_much(sends_on, 500);
  while (stats_line("connections-closed-stalled") != "connections-closed-stalled: 2") {
    ASSERT_LT(steady_clock::now() - before, kLate);
    sends_on.send("use a\r\n");
    std::this_thread::sleep_for(milliseconds(20));
  }
}

TEST_F(StalledClients, ASlowButSteadyReaderGetsAllReplies) {
  start_with(kLong, kLong);
  Peer slow(tcp_, 16 << 10);
  constexpr std::size_t kPeeks = 300;  // 18 MB
  ask_for_much(slow, kPeeks);
  const std::string found = "FOUND 1 60000\r\n" + std::string(kBody, 'b') + "\r\n";
  const std::size_t whole = kPeeks * found.size();
  std::size_t got = 0;
  for (const auto until = steady_clock::now() + 2 * kLong; steady_clock::now() < until;) {
    got += slow.read(32 << 10).size();
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_LT(got, whole / 2) << "it did not read slowly";
  got += slow.read(whole - got).size();
  EXPECT_EQ(got, whole);
}

TEST_F(StalledClients, AClientThatWaitsInAReserveIsNotClosed) {
  start_with(kShort, kShort);
  Peer for_ever(tcp_);
  Peer for_a_time(tcp_);
  for_ever.send("watch b\r\nreserve\r\n");
  for_a_time.send("reserve-with-timeout-ms 1200\r\n");
  EXPECT_EQ(for_ever.read(12), "WATCHING 2\r\n");
  EXPECT_EQ(for_a_time.read(11), "TIMED_OUT\r\n");
  Peer producer(tcp_);
  producer.send(kPut);
  EXPECT_EQ(for_ever.read(kReserved.size()), kReserved);
}

TEST_F(StalledClients, AnIdleClientIsClosedAfterTheIdleTimeOut) {
  start_with(milliseconds(0), kShort);
  const auto connected = steady_clock::now();
  Peer silent(tcp_);
  expect_closed(silent, connected, kShort);

  Peer peer(tcp_);
  const auto before = steady_clock::now();
  EXPECT_EQ(peer.say("use a\r\n", kUsing), kUsing);
  expect_closed(peer, before, kShort);
  EXPECT_EQ(stats_line("connections-closed-idle"), "connections-closed-idle: 2");
}

TEST_F(StalledClients, AClientThatHoldsAJobIsNotIdleBeforeTheTtrIsOver) {
  start_with(milliseconds(0), kShort);
  Peer worker(tcp_);
  const auto before = steady_clock::now();
  worker.send("put-ms 0 0 1500 5\r\nhello\r\nreserve\r\n");
  EXPECT_EQ(worker.read(kInserted.size() + kReserved.size()),
            std::string(kInserted) + std::string(kReserved));
  expect_closed(worker, before, milliseconds(1'500));
}

TEST_F(StalledClients, TheJobsOfAClosedClientAreReadyAgain) {
  start_with(kLong, milliseconds(0));
  Peer worker(tcp_);
  worker.send(kPut);
  EXPECT_EQ(worker.read(kInserted.size()), kInserted);
  EXPECT_EQ(worker.say("reserve\r\n", kReserved), kReserved);
  Peer other(tcp_);
  other.send("reserve\r\n");
  const auto before = steady_clock::now();
  worker.send("delete");
  EXPECT_EQ(other.read(kReserved.size()), kReserved);
  EXPECT_GE(steady_clock::now() - before, kLong);
  EXPECT_TRUE(worker.at_end());
}

TEST_F(StalledClients, RepliesArriveBeforeTheEndOfTheConnection) {
  start_with(kShort, milliseconds(0));
  Peer peer(tcp_);
  peer.send("use a\r\n" + std::string(kPut) + "use");
  EXPECT_EQ(peer.read(100), std::string(kUsing) + std::string(kInserted));
}

}  // namespace
}  // namespace carillon::server
