// The fixture of the engine's tests: a queue on a virtual clock with three clients.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "queue/virtual_queue.h"

namespace carillon::queue {

using Words = std::vector<std::string>;

class EngineTest : public testing::Test {
 protected:
  void TearDown() override { queue.engine().check_invariants(); }

  JobState state(JobId id) { return queue.engine().job_stats(queue.now(), id)->state; }
  JobCounts counts(std::string_view tube = "default") {
    return queue.engine().tube_stats(queue.now(), tube)->jobs;
  }

  VirtualQueue queue;
  Engine& engine = queue.engine();
  ClientId producer = engine.connect();  // client 1
  ClientId worker = engine.connect();    // client 2
  ClientId other = engine.connect();     // client 3
};

}  // namespace carillon::queue
