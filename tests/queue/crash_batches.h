// What the crash tests write: numbered batches of jobs. From the jobs in a store a test can tell
// how many batches the store holds, and whether each of them is whole.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

// Batch n (from 1) puts the jobs 3n, 3n + 1 and 3n + 2, whose bodies depend on n, and erases the
// jobs of batch n - 20, in one append.
inline constexpr std::uint64_t kLive = 20;

inline JobRecord job_of(std::uint64_t batch, std::uint64_t which) {
  return {.id = 3 * batch + which,
          .tube = 1,
          .priority = 0,
          .due = 1'000 + batch,
          .burial = which == 2 ? batch : 0,
          .ttr = 1'000,
          .created = 1,
          .history = {}};
}

// One body in kOneLargeIn, at random, has up to 40'000 bytes; the others have less than 300.
inline constexpr std::uint64_t kOneLargeIn = 10;

inline std::string batch_body(std::uint64_t batch, std::uint64_t which,
                              std::uint64_t one_large_in = kOneLargeIn) {
  std::mt19937_64 random(3 * batch + which);
  std::string body(random() % one_large_in == 0 ? random() % 40'000 : random() % 300, '\0');
  for (char& byte : body) byte = static_cast<char>(random());
  return body;
}

// write() makes watermarks durable, so most batches must have no watermarks.
inline constexpr std::uint64_t kOneWithWatermarksIn = 8;

inline Watermarks watermarks_of(std::uint64_t batch) {
  return {.next_id = batch + 1, .next_burial = batch, .time = UINT64_MAX};
}

inline void append_batch(Store& store, std::uint64_t batch,
                         std::uint64_t one_large_in = kOneLargeIn) {
  std::vector<std::string> bodies;
  for (std::uint64_t which = 0; which < 3; ++which)
    bodies.push_back(batch_body(batch, which, one_large_in));
  Changes changes;
  for (std::uint64_t which = 0; which < 3; ++which)
    changes.jobs.push_back({{}, job_of(batch, which), bodies[which]});
  if (batch > kLive) {
    for (std::uint64_t which = 0; which < 3; ++which)
      changes.jobs.push_back({job_of(batch - kLive, which), {}, {}});
  }
  const std::uint64_t live = std::min(batch, kLive);
  if (batch % kOneWithWatermarksIn == 0) changes.watermarks = watermarks_of(batch);
  changes.tubes = {{.number = 1, .name = "default", .scheduled = 2 * live, .buried = live}};
  store.append(changes);
}

// Returns how many batches the store holds. Fails unless these are the first batches and each is
// whole.
inline std::uint64_t batches_in(const Store& store, std::uint64_t one_large_in = kOneLargeIn) {
  const Recovered recovered = store.recover();
  const std::vector<JobRecord> all = store.scan_due(1, {}, 1'000);
  const std::uint64_t last = all.empty() ? 0 : all.back().id / 3;
  const std::uint64_t live = std::min(last, kLive);
  const std::uint64_t marked = last / kOneWithWatermarksIn * kOneWithWatermarksIn;
  EXPECT_EQ(recovered.watermarks, marked == 0 ? Watermarks{} : watermarks_of(marked));
  if (last == 0) {
    EXPECT_TRUE(recovered.tubes.empty());
  } else {
    EXPECT_EQ(recovered.tubes, (std::vector<TubeRecord>{{1, "default", 2 * live, live}}));
  }
  std::vector<JobRecord> due;
  std::vector<JobRecord> buried;
  for (std::uint64_t batch = last - live + 1; batch <= last; ++batch) {
    for (std::uint64_t which = 0; which < 3; ++which) {
      const JobRecord job = job_of(batch, which);
      (job.buried() ? buried : due).push_back(job);
      EXPECT_EQ(store.find(job.id), job);
      EXPECT_TRUE(store.body(job.id) == batch_body(batch, which, one_large_in)) << batch;
    }
  }
  EXPECT_EQ(all, due);
  EXPECT_EQ(store.scan_buried(1, 0, 1'000), buried);
  return last;
}

}  // namespace carillon::queue
