// What the server writes to the device by which processors are kept awake, and when. A file stands
// for the device here; what the kernel makes of it is shown by stay_awake_test.py.

#include "server/stay_awake.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "running_loop.h"
#include "server/start_error.h"

namespace carillon::server {
namespace {

using Written = std::vector<std::int32_t>;  // us that a wake-up may take, one after the other
constexpr std::int32_t kNoTime = 0;
constexpr std::int32_t kAnyTime = 2'000'000'000;

class Device {
 public:
  Device() { std::ofstream{path_}; }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { std::filesystem::remove(path_); }

  LatencyDevice open() const { return LatencyDevice(path_); }

  Written written() const {
    std::ifstream file(path_, std::ios::binary);
    Written all;
    for (std::int32_t next = 0; file.read(reinterpret_cast<char*>(&next), sizeof next);)
      all.push_back(next);
    return all;
  }

 private:
  std::string path_ = ::testing::TempDir() + "carillon-latency-" + std::to_string(::getpid());
};

class StayAwakeTest : public ::testing::Test {
 protected:
  Device device_;
  boost::asio::io_context io_;
};

TEST_F(StayAwakeTest, RequestsNothingBeforeSomebodyIsActive) {
  StayAwake awake(io_, device_.open());
  EXPECT_EQ(io_.run(), 0u);
  EXPECT_EQ(device_.written(), Written{});
}

TEST_F(StayAwakeTest, RequestsOnceForAllThatComesInTime) {
  StayAwake awake(io_, device_.open());
  for (int i = 0; i < 1000; ++i) awake.active();
  EXPECT_EQ(device_.written(), Written{kNoTime});
}

TEST_F(StayAwakeTest, TheRequestStandsAsLongAsSomebodyIsActive) {
  StayAwake awake(io_, device_.open());
  awake.active();
  for (int i = 0; i < 5; ++i) {
    awake.active();
    ASSERT_EQ(io_.run_one(), 1u);
    ASSERT_EQ(device_.written(), Written{kNoTime});
  }
}

TEST_F(StayAwakeTest, WithdrawsWhenNobodyIsActiveAnyMore) {
  StayAwake awake(io_, device_.open());
  const auto start = std::chrono::steady_clock::now();
  awake.active();
  EXPECT_EQ(io_.run(), 1u);  // and sets no timer again
  EXPECT_GE(std::chrono::steady_clock::now() - start, StayAwake::kLinger);
  EXPECT_EQ(device_.written(), (Written{kNoTime, kAnyTime}));
  awake.active();
  EXPECT_EQ(device_.written(), (Written{kNoTime, kAnyTime, kNoTime}));
}

TEST_F(StayAwakeTest, DoesNothingUnlessItWasAskedTo) {
  StayAwake awake(io_, std::nullopt);
  awake.active();
  EXPECT_EQ(io_.run(), 0u);
}

TEST_F(StayAwakeTest, ADeviceThatIsNotThereIsNamed) {
  try {
    const LatencyDevice device("/dev/no-such-device");
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
  // Waits until something more was requested than `before`, and all of it withdrawn. That is one
  // pair; or more, if the machine kept the loop waiting in the middle. Returns how much was
  // written; ends with a failure after 20 s.
  std::size_t written_at_rest(std::size_t before) const {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      const Written written = device_.written();
      for (std::size_t i = 0; i < written.size(); ++i)
        EXPECT_EQ(written[i], i % 2 == 0 ? kNoTime : kAnyTime) << i;
      if (written.size() >= before + 2 && written.size() % 2 == 0) return written.size();
      if (std::chrono::steady_clock::now() > patience) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "not at rest, or nothing requested";
    return before;
  }

  Device device_;
};

TEST_F(AwakeLoopTest, ProcessorsAreAwakeForEachCommandAndSleepAfterwards) {
  start({}, device_.open());
  Peer peer(tcp_);
  std::size_t before = written_at_rest(0);  // to connect is to be active
  for (int i = 0; i < 3 && !HasFailure(); ++i) {
    ASSERT_EQ(peer.say("use a\r\n", "USING a\r\n"), "USING a\r\n");
    ASSERT_GT(device_.written().size(), before);
    before = written_at_rest(before);
  }
}

TEST_F(AwakeLoopTest, TheyAreAwakeBeforeThereIsAReply) {
  start({}, device_.open());
  Peer peer(tcp_);
  const std::size_t before = written_at_rest(0);
  peer.send("put 0 0 60 5\r\n");
  EXPECT_GT(written_at_rest(before), before);
}

TEST_F(AwakeLoopTest, WhoWaitsOrSaysNothingLetsThemSleep) {
  start({}, device_.open());
  Peer worker(tcp_);
  std::size_t before = written_at_rest(0);
  ASSERT_EQ(worker.say("use a\r\nreserve\r\n", "USING a\r\n"), "USING a\r\n");
  before = written_at_rest(before);
  const Peer silent(tcp_);
  ASSERT_EQ(written_at_rest(before), before + 2);
  std::this_thread::sleep_for(10 * StayAwake::kLinger);
  EXPECT_EQ(device_.written().size(), before + 2);
}

}  // namespace
}  // namespace carillon::server
