// How many delayed jobs of a tube are due in each minute, hour or day to come, or in any other
// spans of time.
//
//   DueCounts counts{.tube = "mail", .bounds = bounds_of(now_ms, 60'000, 60)};
//   while (!counts.done) engine.count_due(now(), counts);
//   counts.jobs[0];                       // until the end of this minute
//   counts.exact_until;                   // what is due later than that is estimated
//
// Jobs are counted one by one in the order of their due times, about `budget` of them. Jobs due
// later are estimated, if the store can do so without reading all of them; otherwise counting goes
// on. (With groups, all counts are then estimates.) The sum over all spans and `later` is
// `delayed`, unless jobs come or go meanwhile.
//
// Why estimates: to count ten million jobs takes seconds of the loop. A storm that is planned for
// next month must show nevertheless.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "carillon/queue/job.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

struct DueCounts {
  std::string tube;
  // The beginnings of the spans, and then the end of the last one, in ms since 1970. They rise; the
  // first one is now. At most kMostSpans.
  std::vector<UtcMs> bounds;
  std::uint64_t budget = 65'536;

  // At the first step: the time, and how many jobs are delayed.
  UtcMs now = 0;
  std::uint64_t delayed = 0;
  // Jobs in each span; `later`: jobs due after the last one. The first span also has all jobs that
  // are due before it.
  std::vector<std::uint64_t> jobs = {};
  std::uint64_t later = 0;
  // Jobs due before this moment were counted, the others are estimated. UINT64_MAX: all were
  // counted.
  UtcMs exact_until = UINT64_MAX;
  bool done = false;

  // Internal: where the next step resumes, and what was counted so far.
  DueKey next = {};
  std::uint32_t lane = 0;  // the lane of a group; 0: the jobs without a group
  std::uint64_t counted = 0;
  std::uint64_t looked_at = 0;
  bool has_later = false;
  // The store's estimates for the spans from the first estimated one on, and for later jobs.
  std::vector<double> weights = {};
  std::size_t weighed = 0;  // how many of them the present lane has
};

inline constexpr std::size_t kMostSpans = 2'000;

// Returns the bounds of `spans` spans from `now` on: each ends at a multiple of `width`, in ms.
inline std::vector<UtcMs> bounds_of(UtcMs now, Millis width, std::size_t spans) {
  std::vector<UtcMs> bounds{now};
  for (std::size_t n = 1; n <= spans; ++n) bounds.push_back((now / width + n) * width);
  return bounds;
}

// A store that can estimate how many jobs are due when, without reading all of them.
class DueEstimates {
 public:
  // For each of `bounds`, returns about how many of the tube's jobs are due from there on and
  // before the next one; without buried jobs and jobs in memory. The numbers are weights: they may
  // only be compared with each other, or with those of another tube. Throws StoreError. REQUIRES:
  // two bounds at least, which rise. O(bounds * log jobs).
  virtual std::vector<double> estimate_due(std::uint32_t tube,
                                           std::span<const UtcMs> bounds) const = 0;
  struct InMemory {
    // kErased: after the last job come many erased ones, and the scan has given up.
    enum class End : std::uint8_t { kNoMore, kLimit, kErased };
    std::vector<DueKey> jobs;
    End end = End::kNoMore;
  };
  // Returns the jobs in memory that are not buried, in the order of (due, id) from `from` on, at
  // most `limit` of them. Throws StoreError. O(limit + log jobs).
  virtual InMemory scan_due_in_memory(std::uint32_t tube, DueKey from, std::size_t limit) const = 0;

 protected:
  ~DueEstimates() = default;
};

}  // namespace carillon::queue
