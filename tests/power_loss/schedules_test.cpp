// No firing of a schedule is lost or doubled, though the machine loses power again and again: an
// engine over a DiskStore, under each sync policy.
//
// A second self of the test lets schedules fire, on a virtual clock, and is killed. What was not
// synced is lost in part or whole (disk.h), and the next one goes on from there. CARILLON_SEED=n
// repeats what is lost, but not the instruction at which the second self dies; CARILLON_TRIALS=n
// tries n times as often.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

constexpr UtcMs kStart = 1'700'000'000'000;
constexpr Millis kEvery[] = {1'000, 1'500, 7'000};

struct Shared {
  SyncPolicy policy;
  std::atomic<UtcMs> utc = kStart;           // the virtual clock
  std::atomic<UtcMs> acknowledged = kStart;  // all that fired by then is durable
  Disk disk;
};

Now at(UtcMs utc) {
  return {.utc_ns = utc * 1'000'000, .mono_ns = (utc - kStart + 1) * 1'000'000};
}

DiskStoreOptions options_for(const SyncPolicy& policy) {
  return {.recent = 1 << 20,
          .read_cache = 1 << 20,
          .log_bytes = 1 << 20,
          .log_segment_bytes = 256 << 10,
          .durable_writes = policy.mode == SyncPolicy::Mode::kAlways};
}

// Unless they are there. Their first occurrences are caught up.
void set_schedules(Engine& engine, Now now) {
  if (engine.schedules("", SIZE_MAX).size() == std::size(kEvery)) return;
  for (const Millis every : kEvery) {
    const std::string name = "every-" + std::to_string(every);
    engine.set_schedule(now, name,
                        {.tube = name,
                         .body = std::string(200, 'b'),
                         .every = every,
                         .start = kStart,
                         .catch_up = CatchUp::kAll,
                         .catch_up_window = kMaxScheduleSpan});
  }
}

[[noreturn]] void fire_until_killed(const std::string& directory) {
  SharedMemory<Shared> shared(directory + "/shared");
  track_writes_in(&shared->disk);
  DiskStore store(directory + "/made", options_for(shared->policy));
  shared->disk.takes = 300;
  Engine engine(store, {.boot = "boot"}, at(shared->utc));
  set_schedules(engine, at(kStart));
  GroupCommit commit(store, shared->policy, [](const CommitReport& report) {
    if (!report.failure.empty()) std::abort();
  });
  std::deque<std::pair<Sequence, UtcMs>> waiting;
  while (true) {
    const UtcMs utc = shared->utc += 250;
    engine.advance(at(utc));
    const bool is_settled = *engine.next_wakeup() > at(utc).mono_ns;
    if (is_settled) waiting.emplace_back(engine.last_sequence(), utc);
    commit.request(engine.last_sequence());
    for (; !waiting.empty() && waiting.front().first <= commit.acknowledgeable();
         waiting.pop_front())
      shared->acknowledged = waiting.front().second;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Each occurrence has one job, from the first one to the last one that has fired.
void check(const Store& store, UtcMs acknowledged) {
  const Recovered recovered = store.recover();
  for (const ScheduleRecord& record : recovered.schedules) {
    const Millis every = record.schedule.every;
    std::vector<UtcMs> due;
    for (const TubeRecord& tube : recovered.tubes) {
      if (tube.name != record.name) continue;
      for (const JobRecord& job : store.scan_due(tube.number, {}, SIZE_MAX)) due.push_back(job.due);
    }
    ASSERT_EQ(due.size(), record.fired) << record.name;
    for (std::size_t n = 0; n < due.size(); ++n)
      ASSERT_EQ(due[n], kStart + (n + 1) * every) << record.name;
    ASSERT_EQ(record.last_occurrence, due.empty() ? 0 : due.back()) << record.name;
    ASSERT_LT(acknowledged, kStart + (due.size() + 1) * every) << record.name;
  }
}

class Schedules : public testing::TestWithParam<SyncPolicy> {};

std::string name_of(const testing::TestParamInfo<SyncPolicy>& test) {
  const bool always = test.param.mode == SyncPolicy::Mode::kAlways;
  return always ? "Always" : test.param.mode == SyncPolicy::Mode::kOs ? "Os" : "Interval";
}

INSTANTIATE_TEST_SUITE_P(Sync, Schedules,
                         testing::Values(SyncPolicy::always(), SyncPolicy::every(milliseconds(50)),
                                         SyncPolicy::os()),
                         name_of);

TEST_P(Schedules, FireOnceOverPowerLosses) {
  if (SecondSelf::is_this()) fire_until_killed(SecondSelf::argument());
  std::mt19937_64 random(seed_or(1));
  const TemporaryDirectory directory;
  const fs::path made = directory / "made";
  const fs::path copy = directory / "copy";
  SharedMemory<Shared> shared(directory / "shared");
  const char* factor = std::getenv("CARILLON_TRIALS");
  UtcMs utc = kStart;
  for (int left = 5 * (factor == nullptr ? 1 : std::atoi(factor)); left > 0; --left) {
    shared.emplace();
    shared->policy = GetParam();
    shared->utc = utc;
    SecondSelf writer(directory.path());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (shared->acknowledged < utc + 100'000) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(milliseconds(1));
    }
    std::this_thread::sleep_for(milliseconds(random() % 60));
    writer.kill();
    const int status = writer.wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it has ended: " << status;
    utc = shared->utc;
    fs::copy(made, copy);
    SCOPED_TRACE(shared->disk.lose_power(made, copy, random));
    const bool is_durable = GetParam().mode == SyncPolicy::Mode::kAlways;
    check(DiskStore(copy, options_for(GetParam())), is_durable ? shared->acknowledged.load() : 0);
    if (HasFatalFailure()) return;
    fs::remove_all(made);
    fs::rename(copy, made);
  }
}

}  // namespace
}  // namespace carillon::queue
