// Where in each tube's orders the first job may stand, so that a scan from the head need not pass
// the jobs that are gone.
//
// In a log-structured store an erased key is an entry too, until a compaction drops it. A queue
// erases at the head, and there its scans begin: without this, each scan after n erasures would
// pass all n.
//
// Memory: one entry for each tube and order that was scanned. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "queue/store/record_keys.h"

namespace carillon::queue {

class LowestPlaces {
 public:
  // Where to begin a scan that is to begin at `from`: no job stands between the two.
  IndexKey start(const IndexKey& from) const {
    const auto known = lowest_.find(order_of(from));
    return known != lowest_.end() && view(from) < view(known->second) ? known->second : from;
  }

  // A scan from `from` on has met no job before `first`.
  void scanned(const IndexKey& from, const IndexKey& first) {
    IndexKey& lowest = lowest_.try_emplace(order_of(from), head_of(from)).first->second;
    if (view(from) <= view(lowest)) lowest = first;
  }

  // A job stands at `place` now.
  void entered(const IndexKey& place) {
    const auto known = lowest_.find(order_of(place));
    if (known != lowest_.end() && view(place) < view(known->second)) known->second = place;
  }

  // The tube holds no job.
  void forget(std::uint32_t tube) {
    lowest_.erase(order_of(due_index_key(tube, 0, 0)));
    lowest_.erase(order_of(burial_index_key(tube, 0, 0)));
  }

 private:
  // A place's kind and tube.
  static std::uint64_t order_of(const IndexKey& place) {
    std::uint64_t order = 0;
    for (std::size_t i = 0; i < 5; ++i) order = (order << 8) | static_cast<std::uint8_t>(place[i]);
    return order;
  }

  // The lowest place that there is in the order of `place`. Burials are numbered from 1.
  static IndexKey head_of(const IndexKey& place) {
    IndexKey head{};
    std::copy_n(place.begin(), 5, head.begin());
    if (place[0] == 'b') head[12] = 1;
    return head;
  }

  std::unordered_map<std::uint64_t, IndexKey> lowest_;
};

}  // namespace carillon::queue
