// Clients that ask for as much as they can, on real sockets, and how long others wait meanwhile.
// The bounds are generous, because the machine may be busy: that nobody waits for long shows best
// where time is virtual (session_steps_test.cpp, fair_queue_test.cpp). To see the waits:
// CARILLON_PRINT_WAITS=1 build/server_tests --gtest_filter='HostileClients.*'

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "running_loop.h"

namespace carillon::server {
namespace {

class HostileClients : public RunningLoop {
 protected:
  // Sends `commands` commands at once and reads their answers, in steps of 1 000. `command` and
  // `answer` return the n-th, from 0 on.
  using Text = std::function<std::string(int)>;
  static void pipeline(Peer& peer, int commands, const Text& command, const Text& answer) {
    constexpr int kAtOnce = 1'000;
    for (int done = 0; done < commands; done += kAtOnce) {
      std::string sent;
      std::string answers;
      for (int n = done; n < std::min(done + kAtOnce, commands); ++n) {
        sent += command(n);
        answers += answer(n);
      }
      ASSERT_EQ(peer.say(sent, answers), answers);
    }
  }

  static std::string number(int n) { return std::to_string(n); }

  // Puts jobs that are due in a day, each into a tube of its own. REQUIRES: the first ones.
  static void make_tubes(Peer& peer, int tubes) {
    pipeline(
        peer, tubes, [](int n) { return "use t" + number(n) + "\r\nput 0 86400 60 1\r\nx\r\n"; },
        [](int n) { return "USING t" + number(n) + "\r\nINSERTED " + number(n + 1) + "\r\n"; });
  }

  // Runs `client` in four threads. Each is told the moment at which it shall end.
  using Client = std::function<void(std::chrono::steady_clock::time_point until)>;
  static void four_for_a_second(const Client& client) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) clients.emplace_back(client, until);
    for (std::thread& each : clients) each.join();
  }

  // A client sends one short command after the other until `work` is done. Nine of ten of its
  // replies come within 150 ms, and there are at least three.
  void expect_others_are_served_while(const std::function<void()>& work) {
    using std::chrono::steady_clock;
    Peer other(tcp_);
    ASSERT_EQ(other.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
    std::atomic<bool> done = false;
    std::thread worker([&] {
      work();
      done = true;
    });
    std::vector<double> waits;
    while (!done) {
      const auto from = steady_clock::now();
      EXPECT_EQ(other.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
      waits.push_back(
          std::chrono::duration<double, std::milli>(steady_clock::now() - from).count());
    }
    worker.join();
    ASSERT_GE(waits.size(), 3u);
    std::sort(waits.begin(), waits.end());
    EXPECT_LT(waits[waits.size() * 9 / 10], 150) << "the longest took " << waits.back() << " ms";
    if (std::getenv("CARILLON_PRINT_WAITS") != nullptr)
      std::printf("%zu replies, p50 %.2f p90 %.2f p99 %.2f max %.2f ms\n", waits.size(),
                  waits[waits.size() / 2], waits[waits.size() * 9 / 10],
                  waits[waits.size() * 99 / 100], waits.back());
  }
};

TEST_F(HostileClients, AskingForStatisticsAndListsOf100000Tubes) {
  start();
  Peer greedy(tcp_);
  make_tubes(greedy, 100'000);
  std::string list = "---\n- default\n- a\n";
  for (int n = 0; n < 100'000; ++n) list += "- t" + number(n) + "\n";
  const auto bytes_of_list = list.size();
  expect_others_are_served_while([&] {
    std::string commands;
    for (int i = 0; i < 1'000; ++i) commands += "stats\r\n";
    greedy.send(commands);
    for (int i = 0; i < 1'000; ++i)
      greedy.read(std::stoul(greedy.read_line().substr(std::string_view("OK ").size())) + 2);
    for (int i = 0; i < 10; ++i) {
      greedy.send("list-tubes\r\n");
      EXPECT_EQ(greedy.read_line(), "OK " + std::to_string(bytes_of_list) + "\r\n");
      const std::string got = greedy.read(bytes_of_list + 2);
      EXPECT_TRUE(got.starts_with("---\n- default\n"));
      EXPECT_TRUE(got.ends_with("\n\r\n"));
      EXPECT_EQ(std::count(got.begin(), got.end(), '\n'), 100'004);
    }
  });
}

TEST_F(HostileClients, FiftyThatPipelinePuts) {
  start();
  std::string puts;
  for (int i = 0; i < 2'000; ++i) puts += "put 0 86400 60 1\r\nx\r\n";
  std::vector<std::unique_ptr<Peer>> greedy;
  for (int i = 0; i < 50; ++i) greedy.push_back(std::make_unique<Peer>(tcp_));
  expect_others_are_served_while([&] {
    for (const auto& peer : greedy) peer->send(puts);
    for (const auto& peer : greedy) {
      const std::string some = peer->read(2'000 * std::string_view("INSERTED 1\r\n").size());
      for (auto lines = std::count(some.begin(), some.end(), '\n'); lines < 2'000; ++lines)
        ASSERT_TRUE(peer->read_line().ends_with("\n"));  // perhaps a line's last byte alone
    }
  });
}

// What a client sends behind its quit is read and thrown away, so that its replies are not lost.
TEST_F(HostileClients, FourThatSendWithoutEndBehindAQuit) {
  start();
  const std::string bytes(1 << 18, 'x');
  expect_others_are_served_while([&] {
    four_for_a_second([&](auto until) {
      Peer greedy(tcp_);
      greedy.send("quit\r\n");
      while (std::chrono::steady_clock::now() < until) greedy.send(bytes);
    });
  });
}

// On the Unix socket a client connects more quickly than the server accepts.
TEST_F(HostileClients, FourThatConnectAndLeave) {
  start();
  expect_others_are_served_while([&] {
    four_for_a_second([&](auto until) {
      while (std::chrono::steady_clock::now() < until)
        Peer({.host = {}, .port = 0, .path = path_}).reset();
    });
  });
}

}  // namespace
}  // namespace carillon::server
