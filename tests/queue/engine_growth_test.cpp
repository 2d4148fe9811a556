// What holds the jobs and tubes of an engine grows in small steps, so that no command stops the
// others while it moves all of them. These tests measure memory instead of time: a step moves as
// much as it allocates.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "carillon/queue/engine.h"
#include "carillon/queue/memory_store.h"
#include "queue/allocations.h"

namespace carillon::queue {
namespace {

constexpr Now kNow{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
constexpr std::size_t kMany = 120'000;

class EngineGrowth : public testing::Test {
 protected:
  // Returns the most bytes that one of the commands allocates.
  template <class Command>
  static std::size_t most_bytes(Command command) {
    std::size_t most = 0;
    for (std::size_t n = 0; n < kMany; ++n)
      most = std::max(most, bytes_allocated_by([&] { command(n); }));
    return most;
  }

  MemoryStore store;
  Engine engine{store, {}, kNow};
  ClientId client = engine.connect();
};

// 860 159 jobs in memory once took 33 MB for the next one, and 20 ms.
TEST_F(EngineGrowth, PutsOfManyNearJobs) {
  const auto put = [this](std::size_t n) {
    engine.put(client, kNow, {.due_in = 1'000 + n % 30'000}, "x");
  };
  EXPECT_LT(most_bytes(put), 64'000u);
  EXPECT_EQ(engine.stats().jobs.loaded, kMany);
}

// Each new tube once cost a copy of the list of all.
TEST_F(EngineGrowth, PutsIntoManyTubes) {
  const auto put = [this](std::size_t n) {
    engine.use(client, "tube-" + std::to_string(n));
    engine.put(client, kNow, {}, "x");
  };
  EXPECT_LT(most_bytes(put), 64'000u);
  EXPECT_EQ(engine.stats().tubes, kMany + 1);
}

}  // namespace
}  // namespace carillon::queue
