// A client that asks for much waits for itself: others are served in between, on real sockets. The
// bounds are generous, because the machine may be busy; without turns each test takes seconds.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "running_loop.h"
#include "server/net/clock.h"

namespace carillon::server {
namespace {

using std::chrono::milliseconds;

class TurnsTest : public RunningLoop {
 protected:
  // Makes `jobs` jobs that are due in a day. REQUIRES: they are the first ones.
  static void put_far(Peer& peer, int jobs) {
    constexpr int kAtOnce = 1'000;
    std::string puts;
    for (int i = 0; i < kAtOnce; ++i) puts += "put 0 86400 60 1\r\nx\r\n";
    for (int done = 0; done < jobs; done += kAtOnce) {
      std::string answers;
      for (int i = 1; i <= kAtOnce; ++i) answers += "INSERTED " + std::to_string(done + i) + "\r\n";
      ASSERT_EQ(peer.say(puts, answers), answers);
    }
  }

  // Returns how many answers a new client gets, one at a time, until `other` has sent something.
  static int answers_until(Peer& client, Peer& other) {
    int answers = 0;
    for (; !other.has_input(); ++answers)
      EXPECT_EQ(client.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
    return answers;
  }
};

constexpr int kJobs = 60'000;

TEST_F(TurnsTest, OthersAreServedWhileAClientKicksManyJobs) {
  start();
  Peer greedy(tcp_);
  put_far(greedy, kJobs);
  Peer other(tcp_);
  EXPECT_EQ(other.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
  greedy.send("kick 1000000\r\nuse b\r\n");
  EXPECT_GE(answers_until(other, greedy), 3);
  const std::string answers = "KICKED 60000\r\nUSING b\r\n";
  EXPECT_EQ(greedy.read(answers.size()), answers);
}

TEST_F(TurnsTest, AClientThatConnectsMeanwhileIsServedToo) {
  start();
  Peer greedy(tcp_);
  put_far(greedy, kJobs);
  greedy.send("kick 1000000\r\n");
  Peer other(tcp_);
  EXPECT_EQ(other.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
  EXPECT_FALSE(greedy.has_input()) << "the kick goes on";
}

TEST_F(TurnsTest, SigtermEndsAKickAndItsAnswerCountsWhatWasKicked) {
  start();
  Peer greedy(tcp_);
  put_far(greedy, kJobs);
  greedy.send("kick 1000000\r\n");
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_EQ(terminate(), End::kSignal);
  const std::string answer = greedy.read_line();
  ASSERT_TRUE(answer.starts_with("KICKED ")) << answer;
  queue::Engine engine(store_, {}, {.utc_ns = read_ns(CLOCK_REALTIME), .mono_ns = 0});
  EXPECT_EQ(engine.stats().jobs.ready, std::stoul(answer.substr(7)));
  EXPECT_LT(engine.stats().jobs.ready, static_cast<std::uint64_t>(kJobs));
}

TEST_F(TurnsTest, AClientThatPutsOneJobIsServedWhileManyPipelinePuts) {
  start();
  std::string puts;
  for (int i = 0; i < 20'000; ++i) puts += "put 0 86400 60 1\r\nx\r\n";
  std::vector<std::unique_ptr<Peer>> greedy;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) greedy.push_back(std::make_unique<Peer>(tcp_));
  Peer other(tcp_);
  EXPECT_EQ(other.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
  for (const auto& peer : greedy) threads.emplace_back([&puts, &peer] { peer->send(puts); });
  const auto all_answered = [&greedy] {
    return std::all_of(greedy.begin(), greedy.end(), [](const auto& peer) {
      return peer->bytes_to_read() >= 20'000 * std::string_view("INSERTED 1\r\n").size();
    });
  };
  int answers = 0;
  for (; !all_answered() && answers < 1'000; ++answers) {
    other.send("put 0 0 60 1\r\nx\r\n");
    ASSERT_TRUE(other.read_line().starts_with("INSERTED "));
  }
  EXPECT_GE(answers, 3);
  for (std::thread& thread : threads) thread.join();
}

// The loop asks the store every few milliseconds, without spinning.
TEST_F(TurnsTest, PutsWaitForRoomInTheStoreAndNobodyElseDoes) {
  start();
  Peer putter(tcp_);
  Peer other(tcp_);
  EXPECT_EQ(putter.say("use t\r\n", "USING t\r\n"), "USING t\r\n");
  store_.is_full = true;
  putter.send("put 0 0 60 1\r\nx\r\n");
  EXPECT_EQ(other.say("use u\r\n", "USING u\r\n"), "USING u\r\n");
  const int before = store_.asked;
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LE(store_.asked - before, 50);
  EXPECT_FALSE(putter.has_input());
  store_.is_full = false;
  EXPECT_EQ(putter.read(12), "INSERTED 1\r\n");
}

}  // namespace
}  // namespace carillon::server
