// What a start needs to know of a state on disk (Recovered in store.h).
#pragma once

#include "carillon/queue/store.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

// O(tubes + schedules + unfinished bodies). Throws StoreError if they cannot be read.
Recovered recover(RocksState& state);

}  // namespace carillon::queue
