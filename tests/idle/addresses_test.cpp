// What an IdleTracker takes of its process: addresses for as many connections as its owner expects,
// and little time, also where all memory is locked.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/idle/idle_tracker.h"

namespace carillon::testing {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// A line of /proc/self/status, such as "VmSize", in bytes.
std::size_t of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoul(line.substr(name.size() + 1)) * 1024;
  }
  throw std::runtime_error("/proc/self/status has no line " + name);
}

TEST(IdleTrackerAddresses, ATrackerTakesAddressesForAMillionConnectionsAndNotMore) {
  const std::size_t before = of_process("VmSize");
  const IdleTracker<int> tracker(Ticks{30});
  EXPECT_LE(of_process("VmSize") - before, 20 * kMiB);
}

TEST(IdleTrackerAddresses, AThousandTrackersFit) {
  std::vector<std::unique_ptr<IdleTracker<int>>> trackers;
  for (int i = 0; i < 1000; ++i)
    trackers.push_back(std::make_unique<IdleTracker<int>>(Ticks{30}, 0, MostConnections{1000}));
  for (auto& tracker : trackers) {
    if (&tracker - trackers.data() < 10) tracker->add(1);
  }
}

// A process that locks its memory, as those do that must never wait for the disk, locks the
// reserved addresses too.
TEST(IdleTrackerAddresses, WhereMemoryIsLockedATrackerCostsFewPageTables) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (mlockall(MCL_FUTURE) != 0) _exit(2);
    const std::size_t before = of_process("VmPTE");
    const IdleTracker<int> tracker(Ticks{30});
    _exit(of_process("VmPTE") - before < kMiB ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this process may not lock its memory";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// --- the owner's maximum

TEST(IdleTrackerMost, AnAddBeyondTheMaximumIsRefusedAndChangesNothing) {
  IdleTracker<int> tracker(Ticks{30}, 0, MostConnections{3});
  const IdleId first = tracker.add(1);
  tracker.add(2);
  tracker.add(3);
  const std::size_t before = tracker.allocated_bytes();
  try {
    tracker.add(4);
    FAIL() << "the fourth of three was added";
  } catch (const std::length_error& error) {
    EXPECT_STREQ(error.what(),
                 "carillon: this IdleTracker holds at most 3 connections (MostConnections)");
  }
  tracker.check_invariants();
  EXPECT_EQ(tracker.size(), 3U);
  EXPECT_EQ(tracker.allocated_bytes(), before);
  tracker.remove(first);
  tracker.add(4);
  EXPECT_EQ(tracker.size(), 3U);
  EXPECT_EQ(tracker.advance(31, [](IdleId, int) {}), 3U);
  tracker.add(5);
}

TEST(IdleTrackerMost, NoRoomIsReservedBeyondTheMaximum) {
  IdleTracker<int> tracker(Ticks{30}, 0, MostConnections{100'000});
  tracker.reserve(100'000);
  EXPECT_THROW(tracker.reserve(100'001), std::length_error);
  EXPECT_EQ(tracker.most_connections(), 100'000U);
  EXPECT_EQ(IdleTracker<int>(Ticks{30}).most_connections(), 1'048'576U);
}

TEST(IdleTrackerMost, TheMaximumIsOneToTwoToThe31) {
  const auto most_of = [](std::size_t most) {
    return IdleTracker<int>(Ticks{30}, 0, MostConnections{most}).most_connections();
  };
  EXPECT_EQ(most_of(1), 1U);
  EXPECT_EQ(most_of(std::size_t{1} << 31), std::size_t{1} << 31);
  EXPECT_THROW(most_of(0), std::invalid_argument);
  EXPECT_THROW(most_of((std::size_t{1} << 31) + 1), std::invalid_argument);
  EXPECT_THROW(most_of(~std::size_t{0}), std::invalid_argument);
}

TEST(IdleTrackerMost, ATouchWithAnIdOfALargerTrackerDoesNothing) {
  IdleTracker<int> small(Ticks{30}, 0, MostConnections{1});
  const IdleId id = small.add(1);
  small.advance(5, [](IdleId, int) {});
  for (const std::uint32_t index : {1U, 16'384U, 1U << 20, 1U << 22, 1U << 31, ~0U}) {
    small.touch(IdleId{index, 1});
    EXPECT_FALSE(small.remove(IdleId{index, 1})) << index;
    EXPECT_FALSE(small.contains(IdleId{index, 1})) << index;
  }
  EXPECT_EQ(small.last_packet(id), 1U);
}

// An index that is used up is not given again, and there are a million to spare.
TEST(IdleTrackerMost, IndicesThatAreUsedUpDoNotCountAsConnections) {
  IdleTracker<int, 1> tracker(Ticks{30}, 0, MostConnections{1});  // one connection per index
  int added = 0;
  try {
    for (; added < 2'000'000; ++added) tracker.remove(tracker.add(added));
    FAIL() << "more indices than addresses";
  } catch (const std::length_error& error) {
    EXPECT_STREQ(error.what(),
                 "carillon: this IdleTracker has given as many ids as it can; make a new one");
  }
  EXPECT_GE(added, 1'000'000);
  tracker.check_invariants();
}

}  // namespace
}  // namespace carillon::testing
