// The steps of a list of jobs: see job_lists.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

// Jobs of a list that were found in the store.
struct NextListed {
  std::vector<JobRecord> jobs = {};
  std::optional<JobCursor> next = {};  // none: after the last of them
  bool done = false;                   // no other job can match
  bool incomplete = false;             // damage may hide other jobs between them

  // Reads the lane's next `limit` jobs, from the place on.
  static NextListed in(const EngineState& state, const Tube& lane, const JobFilter& filter,
                       const JobCursor& from, std::size_t limit);
  // Adds the job to `meant` if it matches, and moves the list behind it.
  static void pass(EngineState& state, const JobRecord& job, JobListing& list,
                   std::vector<ListedJob>& meant);
  // The next jobs of a list of one lane, and of one of all lanes of a tube.
  static std::vector<ListedJob> of_lane(EngineState& state, const Tube& lane, JobListing& list,
                                        std::size_t limit);
  static std::vector<ListedJob> of_lanes(EngineState& state, Tube& head, JobListing& list,
                                         std::size_t limit);

  // For a change of many jobs, which goes through one lane after the other.
  // Returns the lane where the list goes on; nullptr if the list is done.
  static Tube* lane_of(EngineState& state, JobListing& list);
  // The list has come to the end of a lane.
  static void pass(Tube& lane, JobListing& list);
};

}  // namespace carillon::queue
