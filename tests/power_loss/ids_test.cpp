// No id is given twice, under any sync policy, though the machine loses power and with it jobs that
// were acknowledged: an engine over a DiskStore, with the replies of a group commit.
//
// A second self of the test puts jobs and is killed. What was not synced is lost in part or whole
// (disk.h), and the next one goes on from there. CARILLON_SEED=n repeats what is lost, but not the
// instruction at which the second self dies; CARILLON_TRIALS=n tries n times as often.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"
#include "carillon/queue/group_commit.h"
#include "power_loss/disk.h"
#include "power_loss/shared_memory.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Shared {
  SyncPolicy policy;
  std::atomic<JobId> acknowledged = 0;  // the highest id that a client was told
  Disk disk;
};

Now now() {
  using std::chrono::nanoseconds;
  const auto utc = std::chrono::system_clock::now().time_since_epoch();
  const auto mono = std::chrono::steady_clock::now().time_since_epoch();
  return {.utc_ns = static_cast<std::uint64_t>(nanoseconds(utc).count()),
          .mono_ns = static_cast<std::uint64_t>(nanoseconds(mono).count())};
}

DiskStoreOptions options_for(const SyncPolicy& policy) {
  return {.recent = 1 << 20,
          .read_cache = 1 << 20,
          .log_bytes = 1 << 20,
          .log_segment_bytes = 256 << 10,
          .durable_writes = policy.mode == SyncPolicy::Mode::kAlways};
}

// A turn of the server's loop puts some jobs and buries one, and asks for their replies. Ids go in
// blocks of 1'000, so that many turns begin a new block.
[[noreturn]] void put_until_killed(const std::string& directory) {
  SharedMemory<Shared> shared(directory + "/shared");
  track_writes_in(&shared->disk);
  DiskStore store(directory + "/made", options_for(shared->policy));
  shared->disk.takes = 300;
  Engine engine(store, {}, now());
  GroupCommit commit(store, shared->policy, [](const CommitReport& report) {
    if (!report.failure.empty()) std::abort();
  });
  const ClientId client = engine.connect();
  struct Put {
    JobId id;
    Sequence durable_at;
  };
  std::deque<Put> waiting;
  while (true) {
    for (int n = 0; n < 100; ++n) {
      const PutOutcome put = engine.put(client, now(), {.due_in = 3'600'000}, "body");
      if (put.id <= shared->acknowledged) std::abort();
      waiting.push_back({put.id, put.durable_at});
    }
    if (!engine.reserve_job(client, now(), waiting.back().id) ||
        !engine.bury(client, now(), waiting.back().id, 0).done)
      std::abort();
    commit.request(engine.last_sequence());
    for (; !waiting.empty() && waiting.front().durable_at <= commit.acknowledgeable();
         waiting.pop_front())
      shared->acknowledged = waiting.front().id;
  }
}

class Ids : public testing::TestWithParam<SyncPolicy> {};

std::string name_of(const testing::TestParamInfo<SyncPolicy>& test) {
  const bool always = test.param.mode == SyncPolicy::Mode::kAlways;
  return always ? "Always" : test.param.mode == SyncPolicy::Mode::kOs ? "Os" : "Interval";
}

INSTANTIATE_TEST_SUITE_P(Sync, Ids,
                         testing::Values(SyncPolicy::always(), SyncPolicy::every(milliseconds(50)),
                                         SyncPolicy::os()),
                         name_of);

TEST_P(Ids, AreNeverGivenTwiceOverAPowerLoss) {
  if (SecondSelf::is_this()) put_until_killed(SecondSelf::argument());
  std::mt19937_64 random(seed_or(1));
  const TemporaryDirectory directory;
  const fs::path made = directory / "made";
  const fs::path copy = directory / "copy";
  SharedMemory<Shared> shared(directory / "shared");
  const char* factor = std::getenv("CARILLON_TRIALS");
  JobId acknowledged = 0;
  for (int left = 5 * (factor == nullptr ? 1 : std::atoi(factor)); left > 0; --left) {
    shared.emplace();
    shared->policy = GetParam();
    shared->acknowledged = acknowledged;
    SecondSelf writer(directory.path());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (shared->acknowledged < acknowledged + 1'500) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(milliseconds(1));
    }
    std::this_thread::sleep_for(milliseconds(random() % 60));
    writer.kill();
    const int status = writer.wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it has ended: " << status;
    acknowledged = shared->acknowledged;
    fs::copy(made, copy);
    SCOPED_TRACE(shared->disk.lose_power(made, copy, random));
    const Watermarks marks = DiskStore(copy, options_for(GetParam())).recover().watermarks;
    ASSERT_GT(marks.next_id, acknowledged);
    fs::remove_all(made);
    fs::rename(copy, made);
  }
}

}  // namespace
}  // namespace carillon::queue
