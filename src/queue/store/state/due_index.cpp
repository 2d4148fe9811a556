// Each read is one scan of the index, or one question to RocksDB.

#include "queue/store/state/due_index.h"

#include <rocksdb/iterator.h>
#include <rocksdb/slice.h>

#include <string_view>
#include <utility>

#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"

namespace carillon::queue {

using rocksdb::Slice;

// One iterator for all tubes: making one takes much longer than moving it to the next tube.
std::vector<JobRecord> scan_due_of_each(const RocksState& state,
                                        const std::vector<std::uint32_t>& tubes, UtcMs end,
                                        std::size_t limit) {
  std::vector<JobRecord> found;
  if (tubes.empty() || limit == 0) return found;
  const IndexKey last = due_index_key(tubes.back(), kLast, kLast);
  const Slice last_slice(last.data(), last.size());
  const auto at =
      state.scan_around(kIndex, queue::view(due_index_key(tubes.front(), 0, 0)), last_slice);
  for (const std::uint32_t tube : tubes) {
    const IndexKey head = due_index_key(tube, 0, 0);
    if (at->Valid() && view(at->key()) < queue::view(head)) at->Seek({head.data(), head.size()});
    for (std::size_t n = 0; n < limit && at->Valid(); ++n) {
      JobRecord job = read_job_value(view(at->key()), view(at->value()));
      if (job.tube != tube) break;
      const bool is_last = job.due >= end;
      found.push_back(std::move(job));
      at->Next();
      if (is_last) break;
    }
  }
  state.check(*at);
  return found;
}

// RocksDB also estimates what is in memory, from a few nodes of a skip list. We do not use that
// estimate: it was wrong by a factor of ten.
std::vector<double> estimate_due(const RocksState& state, std::uint32_t tube,
                                 std::span<const UtcMs> bounds) {
  std::vector<IndexKey> keys;
  for (const UtcMs bound : bounds) keys.push_back(due_index_key(tube, bound, 0));
  return state.sizes_in_files(kIndex, keys);
}

DueEstimates::InMemory scan_due_in_memory(const RocksState& state, std::uint32_t tube, DueKey from,
                                          std::size_t limit) {
  using End = DueEstimates::InMemory::End;
  DueEstimates::InMemory found;
  const IndexKey end = due_index_key(tube, kLast, kLast);
  const Slice end_slice(end.data(), end.size());
  const auto at =
      state.scan_memory(kIndex, queue::view(due_index_key(tube, from.due, from.id)), end_slice);
  JobRecord job;
  for (; at->Valid() && found.jobs.size() < limit; at->Next()) {
    set_job_of_key(view(at->key()), job);
    found.jobs.push_back({job.due, job.id});
  }
  if (at->status().IsIncomplete()) {
    found.end = End::kErased;
    return found;
  }
  state.check(*at);
  found.end = at->Valid() ? End::kLimit : End::kNoMore;
  return found;
}

}  // namespace carillon::queue
