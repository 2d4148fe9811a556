// What the server writes to the device by which processors are kept awake, and when. A file stands for the device here; what the
// kernel makes of it is shown by stay_awake_test.py.

#include "server/stay_awake.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "running_loop.h"
#include "server/start_error.h"

namespace carillon::server {
namespace {

using Wishes = std::vector<std::int32_t>;  // us that a wake-up may take, one after the other
constexpr std::int32_t kNone = 0;
constexpr std::int32_t kWhatever = 2'000'000'000;

class Device {
 public:
  Device() { std::ofstream{path_}; }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { std::filesystem::remove(path_); }

  LatencyRequest open() const { return LatencyRequest(path_); }

  Wishes wishes() const {
    std::ifstream file(path_, std::ios::binary);
    Wishes all;
    for (std::int32_t wish = 0; file.read(reinterpret_cast<char*>(&wish), sizeof wish);) all.push_back(wish);
    return all;
  }

  Wishes wait_for(std::size_t count) const {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (wishes().size() < count && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return wishes();
  }

 private:
  std::string path_ = ::testing::TempDir() + "carillon-latency-" + std::to_string(::getpid());
};

class StayAwakeTest : public ::testing::Test {
 protected:
  Device device_;
  boost::asio::io_context io_;
};

TEST_F(StayAwakeTest, WishesNothingBeforeSomebodyIsActive) {
  StayAwake awake(io_, device_.open());
  EXPECT_EQ(io_.run(), 0u);
  EXPECT_EQ(device_.wishes(), Wishes{});
}

TEST_F(StayAwakeTest, WishesOnceForAllThatComesInTime) {
  StayAwake awake(io_, device_.open());
  for (int i = 0; i < 1000; ++i) awake.active();
  EXPECT_EQ(device_.wishes(), Wishes{kNone});
}

TEST_F(StayAwakeTest, HoldsTheWishAsLongAsSomebodyIsActive) {
  StayAwake awake(io_, device_.open());
  awake.active();
  for (int i = 0; i < 5; ++i) {
    awake.active();
    ASSERT_EQ(io_.run_one(), 1u);
    ASSERT_EQ(device_.wishes(), Wishes{kNone});
  }
}

TEST_F(StayAwakeTest, WithdrawsTheWishWhenNobodyIsActiveAnyMore) {
  StayAwake awake(io_, device_.open());
  const auto start = std::chrono::steady_clock::now();
  awake.active();
  EXPECT_EQ(io_.run(), 1u);  // and sets no timer again
  EXPECT_GE(std::chrono::steady_clock::now() - start, StayAwake::kLinger);
  EXPECT_EQ(device_.wishes(), (Wishes{kNone, kWhatever}));
  awake.active();
  EXPECT_EQ(device_.wishes(), (Wishes{kNone, kWhatever, kNone}));
}

TEST_F(StayAwakeTest, DoesNothingUnlessItWasAskedTo) {
  StayAwake awake(io_, std::nullopt);
  awake.active();
  EXPECT_EQ(io_.run(), 0u);
}

TEST_F(StayAwakeTest, ADeviceThatIsNotThereIsNamed) {
  try {
    const LatencyRequest request("/dev/no-such-device");
    FAIL() << "opened it";
  } catch (const StartError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("/dev/no-such-device"), std::string::npos) << what;
    EXPECT_NE(what.find("--stay-awake"), std::string::npos) << what;
    EXPECT_NE(what.find("No such file"), std::string::npos) << what;
  }
}

class AwakeLoopTest : public RunningLoop {
 protected:
  // Wishes and withdraws by turns, and has withdrawn: more than once for one command if it was kept waiting in between.
  static bool at_rest(const Wishes& wishes) {
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      if (wishes[i] != (i % 2 == 0 ? kNone : kWhatever)) return false;
    }
    return wishes.size() % 2 == 0;
  }

  // What was wished by the time that it had been at rest, after `before`.
  Wishes wait_for_rest(std::size_t before) const {
    Wishes wishes = device_.wait_for(before + 2);
    while (!at_rest(wishes)) wishes = device_.wait_for(wishes.size() + 1);
    return wishes;
  }

  Device device_;
};

TEST_F(AwakeLoopTest, EachCommandIsCarriedOutWithProcessorsAwake) {
  start({}, device_.open());
  Peer peer(tcp_);
  std::size_t before = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(peer.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
    const std::size_t after = wait_for_rest(before).size();
    EXPECT_GE(after, before + 2);
    before = after;
  }
}

TEST_F(AwakeLoopTest, WhoWaitsLetsThemSleep) {
  start({}, device_.open());
  Peer worker(tcp_);
  worker.send("reserve\r\n");
  std::size_t wishes = wait_for_rest(0).size();
  const Peer silent(tcp_);  // to connect is to be active
  wishes = wait_for_rest(wishes).size();
  std::this_thread::sleep_for(10 * StayAwake::kLinger);
  EXPECT_EQ(device_.wishes().size(), wishes);
}

}  // namespace
}  // namespace carillon::server
