// Groups of a tube, when the system gives no more memory.

#include <gtest/gtest.h>

#include <cstddef>
#include <new>

#include "queue/allocations.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

// The `failing`th allocation of a put with a new group fails, or else its append. Returns false if
// the put did not come as far as the append.
bool comes_to_append(bool has_group, std::size_t failing) {
  VirtualQueue queue;
  Engine& engine = queue.engine();
  const ClientId client = engine.connect();
  if (has_group) queue.put(client, "x", {.group = "old"});
  bool came = false;
  queue.store().faults.appends = true;
  failing_allocation = failing;
  try {
    engine.put(client, queue.now(), {.group = "new"}, "y");
    ADD_FAILURE() << "the store has failed";
  } catch (const std::bad_alloc&) {
  } catch (const StoreError&) {
    came = true;
  }
  failing_allocation = 0;
  queue.store().faults = {};
  engine.check_invariants();
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->groups, has_group ? 1u : 0u) << failing;
  queue.put(client, "z", {.group = "new"});
  engine.check_invariants();
  return came;
}

TEST(EngineGroupsMemory, AGroupThatCannotBeMadeLeavesNothingBehind) {
  for (const bool has_group : {false, true}) {
    std::size_t failing = 1;
    while (!comes_to_append(has_group, failing)) ++failing;
    EXPECT_GT(failing, 3u);
  }
}

}  // namespace
}  // namespace carillon::queue
