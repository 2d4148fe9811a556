#include "cluster/log_in_memory.h"

#include <algorithm>

#include "carillon/queue/store.h"
#include "cluster/entry_codec.h"

namespace carillon::cluster {

void LogInMemory::fail_next(std::vector<Fault> faults) {
  const Lock lock(mutex_);
  faults_.assign(faults.begin(), faults.end());
}

void LogInMemory::cut_off(bool on) {
  const Lock lock(mutex_);
  cut_off_ = on;
}

void LogInMemory::cut(Position last) {
  const Lock lock(mutex_);
  entries_.resize(last);
  epochs_.resize(last);
}

void LogInMemory::replace() {
  const Lock lock(mutex_);
  id_.low += 1;
  entries_.clear();
  epochs_.clear();
}

std::size_t LogInMemory::size() const {
  const Lock lock(mutex_);
  return entries_.size();
}

SharedLog::Stored LogInMemory::at(Position position) const {
  const Lock lock(mutex_);
  return entries_.at(position - 1);
}

Epoch LogInMemory::epoch() const {
  const Lock lock(mutex_);
  return epochs_.empty() ? 0 : epochs_.back();
}

std::vector<SharedLog::Node> LogInMemory::nodes() const {
  const Lock lock(mutex_);
  std::vector<SharedLog::Node> nodes;
  for (const auto& [id, node] : nodes_) nodes.push_back(node);
  return nodes;
}

Position LogInMemory::begins_at() const {
  const Lock lock(mutex_);
  return begins_at_;
}

void LogInMemory::refuse_if_cut_off() const {
  if (cut_off_) throw queue::LogUnavailable("the log in memory is cut off");
}

LogId LogInMemoryClient::id() {
  const LogInMemory::Lock lock(log_.mutex_);
  log_.refuse_if_cut_off();
  return log_.id_;
}

Place LogInMemoryClient::place_of(const Mark& mark) {
  const LogInMemory::Lock lock(log_.mutex_);
  log_.refuse_if_cut_off();
  if (mark.position > log_.entries_.size()) return Place::kEndsBefore;
  if (mark.position < log_.begins_at_)
    return mark.position == 0 && log_.begins_at_ == 1 ? Place::kThere : Place::kBeginsAfter;
  return log_.entries_[mark.position - 1].chain == mark.chain ? Place::kThere : Place::kAnother;
}

std::vector<SharedLog::Stored> LogInMemoryClient::read(Position after) {
  const LogInMemory::Lock lock(log_.mutex_);
  log_.refuse_if_cut_off();
  constexpr std::size_t kMost = 3;  // so that readers read more than once
  std::vector<Stored> found;
  for (std::size_t at = after; at < log_.entries_.size() && found.size() < kMost; ++at)
    found.push_back(log_.entries_[at]);
  return found;
}

SharedLog::Answer LogInMemoryClient::append(const Entry& entry, std::string_view bytes) {
  const LogInMemory::Lock lock(log_.mutex_);
  auto fault = log_.cut_off_ ? LogInMemory::Fault::kUnavailable : LogInMemory::Fault::kNone;
  if (!log_.faults_.empty()) {
    fault = log_.faults_.front();
    log_.faults_.pop_front();
  }
  if (fault == LogInMemory::Fault::kUnavailable)
    return {.failure = Failure::kUnavailable, .why = "the log in memory takes nothing"};
  if (fault == LogInMemory::Fault::kLostUnknown)
    return {.failure = Failure::kUnknown, .why = "the log in memory has not answered"};
  const Epoch epoch = log_.epochs_.empty() ? 0 : log_.epochs_.back();
  const Chain chain = log_.entries_.empty() ? Chain{} : log_.entries_.back().chain;
  const bool claims = entry.kind == Entry::Kind::kClaim;
  if (claims ? entry.epoch != epoch + 1 : entry.epoch != epoch || entry.before != chain)
    return {.failure = Failure::kRefused, .why = "another node has claimed"};
  const Chain after = claims ? chain_after(chain, bytes) : entry.after;
  log_.entries_.push_back(
      {.position = log_.entries_.size() + 1, .bytes = std::string(bytes), .chain = after});
  log_.epochs_.push_back(entry.epoch);
  if (fault == LogInMemory::Fault::kLandsUnknown)
    return {.failure = Failure::kUnknown, .why = "the log in memory has not answered"};
  return {.position = log_.entries_.size(), .chain = after};
}

void LogInMemoryClient::report(const Node& node) {
  const LogInMemory::Lock lock(log_.mutex_);
  log_.refuse_if_cut_off();
  log_.nodes_[node.id] = node;
}

std::vector<SharedLog::Node> LogInMemoryClient::nodes() {
  return log_.nodes();
}

void LogInMemoryClient::trim(Position before) {
  const LogInMemory::Lock lock(log_.mutex_);
  log_.begins_at_ = std::max(log_.begins_at_, before);
}

std::int64_t LogInMemoryClient::skew() {
  const LogInMemory::Lock lock(log_.mutex_);
  log_.refuse_if_cut_off();
  return 0;
}

}  // namespace carillon::cluster
