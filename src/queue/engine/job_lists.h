// The steps of a list of jobs: see job_lists.cpp.
#pragma once

#include <optional>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "queue/engine/engine_state.h"

namespace carillon::queue {

// Jobs of a list that were found in the store.
struct Engine::State::NextListed {
  std::vector<JobRecord> jobs;
  std::optional<JobCursor> next = {};  // none: after the last of them
  bool done = false;                   // no other job can be meant

  // Returns the lane where the list goes on; nullptr if there is none.
  static Tube* lane_of(State& state, JobListing& list);
  // The list has come to the end of a lane.
  static void pass(Tube& lane, JobListing& list);
};

}  // namespace carillon::queue
