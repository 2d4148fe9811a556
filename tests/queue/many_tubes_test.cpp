// Many tubes: what they cost at a start, and that each comes back as it was.

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/memory_store.h"
#include "queue/temporary_directory.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

constexpr Now kBegin{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};

// The CPU time of this thread, which other programs on the machine do not change, in ms.
double cpu_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

std::string name(std::size_t number) {
  return "tube-" + std::to_string(number);
}

// Puts a job into each of the tubes from `first` on, before `last`.
void put_one_each(Engine& engine, ClientId client, std::size_t first, std::size_t last,
                  Millis delay) {
  for (std::size_t n = first; n < last; ++n) {
    engine.use(client, name(n));
    engine.put(client, kBegin, {.due_in = delay}, "x");
  }
}

// Counts how often the engine scans for the jobs of tubes.
class CountingStore : public MemoryStore {
 public:
  mutable std::size_t scans = 0;
  mutable std::size_t scans_of_many = 0;

  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override {
    ++scans;
    return MemoryStore::scan_due(tube, from, limit);
  }
  std::vector<JobRecord> scan_due_of_each(const std::vector<std::uint32_t>& tubes, UtcMs end,
                                          std::size_t limit) const override {
    ++scans_of_many;
    const std::size_t before = scans;
    std::vector<JobRecord> found = MemoryStore::scan_due_of_each(tubes, end, limit);
    scans = before;
    return found;
  }
};

TEST(ManyTubes, AStartAsksForAThousandTubesAtOnce) {
  for (const Millis delay : {Millis{0}, kDay}) {
    CountingStore store;
    {
      Engine engine(store, {}, kBegin);
      put_one_each(engine, engine.connect(), 0, 4'500, delay);
    }
    store.scans = store.scans_of_many = 0;
    const Engine engine(store, {}, kBegin);
    EXPECT_EQ(store.scans, 0u);
    EXPECT_EQ(store.scans_of_many, 5u);
    EXPECT_EQ(engine.stats().jobs.ready, delay == 0 ? 4'500u : 0u);
    EXPECT_EQ(engine.stats().jobs.loaded, delay == 0 ? 4'500u : 0u);
    engine.check_invariants();
  }
}

TEST(ManyTubes, EachHasAllOfItsDueJobsInTheirOrderAtTheFirstReserve) {
  VirtualQueue queue;
  const ClientId producer = queue.engine().connect();
  // 16 jobs of a tube are read along with those of other tubes; the others by themselves.
  for (const std::size_t jobs : {1u, 15u, 16u, 17u, 40u}) {
    queue.engine().use(producer, name(jobs));
    for (std::size_t n = 0; n < jobs; ++n)
      queue.put(producer, std::to_string(n), {.priority = static_cast<Priority>(jobs - n)});
    queue.put(producer, "far", {.due_in = kDay});
    queue.put(producer, "near", {.due_in = 5'000});
  }
  queue.crash(1'000);
  queue.engine().check_invariants();
  for (const std::size_t jobs : {40u, 17u, 16u, 15u, 1u}) {
    const ClientId worker = queue.engine().connect();
    queue.engine().watch(worker, name(jobs));
    for (std::size_t n = jobs; n > 0; --n)
      ASSERT_EQ(queue.reserve(worker), std::to_string(n - 1)) << jobs;
    ASSERT_EQ(queue.reserve(worker), "TIMED_OUT") << jobs;
    queue.wait(worker);
  }
  // The jobs come in the order of their ids; client 5 watches the first tube.
  queue.pass(4'000);
  EXPECT_EQ(queue.deliveries(),
            (std::vector<std::string>{"5:near", "4:near", "3:near", "2:near", "1:near"}));
}

TEST(ManyTubes, EmptyOnesAreNotThereAfterARestart) {
  MemoryStore store;
  {
    Engine engine(store, {}, kBegin);
    const ClientId client = engine.connect();
    put_one_each(engine, client, 0, 3, 0);
    for (const JobId id : {1u, 3u}) EXPECT_TRUE(engine.remove(client, kBegin, id).done);
    EXPECT_EQ(engine.tubes(), (std::vector<std::string>{"default", name(2), name(1)}));
    engine.watch(client, "watched");
  }
  Engine engine(store, {}, kBegin);
  EXPECT_EQ(engine.tubes(), (std::vector<std::string>{name(1), "default"}));
}

TEST(ManyTubes, AStartTakesTimeInProportionToThem) {
  const auto start = [](std::size_t tubes) {
    const TemporaryDirectory directory;
    const DiskStoreOptions options{.durable_writes = false};
    {
      DiskStore store(directory / "data", options);
      Engine engine(store, {}, kBegin);
      put_one_each(engine, engine.connect(), 0, tubes, kDay);
    }
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double from = cpu_ms();
      DiskStore store(directory / "data", options);
      const Engine engine(store, {}, kBegin);
      best = std::min(best, cpu_ms() - from);
      EXPECT_EQ(engine.stats().jobs.delayed, tubes);
    }
    return best;
  };
  // Four times as many take four times as long, and up to six while other programs use the caches;
  // if each tube cost a visit to all others, it would be sixteen.
  const double few = start(15'000);
  EXPECT_LT(start(60'000), 10 * few) << few;
}

}  // namespace
}  // namespace carillon::queue
