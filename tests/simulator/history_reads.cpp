// What is read of the store is what was appended to it (history.h).

#include "simulator/clock.h"
#include "simulator/history.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;

void work(std::uint64_t units) {
  constexpr std::uint64_t kUnitNs = 4'000;
  virtual_time().pass(units * kUnitNs);
}

void work_on_bytes(std::size_t bytes) {
  virtual_time().pass(bytes);  // 1 GB/s
}

std::optional<JobRecord> HistoryStore::find(JobId id) const {
  work(1);
  const std::optional<JobRecord> found = store_->find(id);
  const auto known = state_.jobs.find(id);
  const bool same = known == state_.jobs.end() ? !found.has_value() : found == known->second.record;
  if (!same) throw Violation("job " + std::to_string(id) + " is read with another record");
  return found;
}

std::string HistoryStore::body(JobId id, std::uint32_t piece) const {
  std::string body = store_->body(id, piece);
  work(1);
  work_on_bytes(body.size());
  compare(id, piece, body);
  return body;
}

std::optional<std::string> HistoryStore::body_at_hand(JobId id, std::uint32_t piece) const {
  if (id % 8 == 7) return std::nullopt;
  std::optional<std::string> body = store_->body_at_hand(id, piece);
  work(1);
  if (!body) return body;
  work_on_bytes(body->size());
  compare(id, piece, *body);
  return body;
}

void HistoryStore::compare(JobId id, std::uint32_t piece, std::string_view bytes) const {
  const queue::StoreModel::Job* const known = state_.job_with_body(id);
  const auto is_same = [&](std::string_view body) {
    const std::size_t at = piece * queue::kBodyPiece;
    return at <= body.size() && body.substr(at, queue::kBodyPiece) == bytes;
  };
  if (known == nullptr || !is_same(known->body))
    throw Violation("body " + std::to_string(id) + " is read with other bytes");
}

std::vector<JobRecord> HistoryStore::scan_due(std::uint32_t tube, queue::DueKey from,
                                              std::size_t limit) const {
  std::vector<JobRecord> found = store_->scan_due(tube, from, limit);
  work(1 + found.size());
  if (found != state_.scan_due(tube, from, limit))
    throw Violation("a scan of tube " + std::to_string(tube) + " finds other jobs");
  return found;
}

std::vector<JobRecord> HistoryStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                                 std::size_t limit) const {
  std::vector<JobRecord> found = store_->scan_buried(tube, from, limit);
  work(1 + found.size());
  if (found != state_.scan_buried(tube, from, limit))
    throw Violation("a scan of the buried jobs of tube " + std::to_string(tube) +
                    " finds other jobs");
  return found;
}

std::optional<queue::KeyRecord> HistoryStore::find_key(std::uint32_t tube,
                                                       std::string_view key) const {
  work(1);
  const auto found = store_->find_key(tube, key);
  if (found != state_.find_key(tube, key))
    throw Violation("the key '" + std::string(key) + "' of tube " + std::to_string(tube) +
                    " is read with another job or end");
  return found;
}

std::vector<queue::KeyRecord> HistoryStore::scan_ended_keys(queue::UtcMs from,
                                                            std::size_t limit) const {
  const auto found = store_->scan_ended_keys(from, limit);
  work(1 + found.size());
  if (found != state_.scan_ended_keys(from, limit))
    throw Violation("a scan of the keys whose jobs are gone finds others");
  return found;
}

std::vector<queue::Attempt> HistoryStore::story(queue::JobId id) const {
  work(1);
  const auto found = store_->story(id);
  const auto known = state_.stories.find(id);
  if (found != (known == state_.stories.end() ? std::vector<queue::Attempt>() : known->second))
    throw Violation("job " + std::to_string(id) + " is read with another story");
  return found;
}

}  // namespace carillon::simulator
