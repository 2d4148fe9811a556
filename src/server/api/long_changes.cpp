// LongChanges (long_changes.h).
#include "server/api/long_changes.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "carillon/require.h"

namespace carillon::server {

std::uint64_t LongChanges::begin(queue::JobBulk bulk, queue::Now now) {
  CARILLON_REQUIRE(!are_full(), running_.size());
  const std::uint64_t id = ++last_;
  all_.emplace(id, LongChange{.bulk = std::move(bulk), .began = now.utc_ns / 1'000'000});
  running_.push_back(id);
  return id;
}

const LongChange* LongChanges::find(std::uint64_t id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

void LongChanges::stop(std::uint64_t id, queue::Now now) {
  const auto found = all_.find(id);
  if (found == all_.end() || found->second.ended != 0) return;
  found->second.stopped = true;
  std::erase(running_, id);
  end(id, now);
}

void LongChanges::work(queue::Now now) {
  CARILLON_REQUIRE(has_work());
  const std::uint64_t id = running_.front();
  running_.pop_front();
  LongChange& operation = all_.at(id);
  try {
    engine_.change_jobs(now, operation.bulk);
  } catch (const std::runtime_error& error) {  // StoreError, OverLimit
    operation.error = error.what();
  }
  if (operation.bulk.ended() || !operation.error.empty()) return end(id, now);
  running_.push_back(id);
}

void LongChanges::end(std::uint64_t id, queue::Now now) {
  all_.at(id).ended = now.utc_ns / 1'000'000;
  ended_.push_back(id);
  if (ended_.size() <= kMostKept) return;
  all_.erase(ended_.front());
  ended_.pop_front();
}

}  // namespace carillon::server
