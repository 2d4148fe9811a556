// Reads of a state's index of due times (record_keys.h) that need only the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "carillon/queue/due_counts.h"
#include "carillon/queue/store.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {

// As Store::scan_due_of_each().
std::vector<JobRecord> scan_due_of_each(const RocksState& state,
                                        const std::vector<std::uint32_t>& tubes, UtcMs end,
                                        std::size_t limit);

// As in DueEstimates.
std::vector<double> estimate_due(const RocksState& state, std::uint32_t tube,
                                 std::span<const UtcMs> bounds);
DueEstimates::InMemory scan_due_in_memory(const RocksState& state, std::uint32_t tube, DueKey from,
                                          std::size_t limit);

}  // namespace carillon::queue
