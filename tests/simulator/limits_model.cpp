// How many jobs of a tube may go out, and when (limits_model.h).

#include "simulator/limits_model.h"

#include <algorithm>
#include <utility>

#include "simulator/clock.h"
#include "simulator/disk.h"

namespace carillon::simulator {

using queue::Limits;
using queue::Now;

namespace {

// So many starts are known at the most.
constexpr std::size_t kMostStarts = 200;

std::uint64_t ms_of(Now now) {
  return now.mono_ns / kNsPerMs;
}

std::uint64_t full(const Limits& limits) {
  return limits.burst * limits.period + limits.rate - 1;
}

}  // namespace

void LimitsModel::restart(Now first, Now last) {
  const std::map<std::string, Entry> before = std::exchange(entries_, {});
  for (const auto& [number, tube] : history_.state().tubes) {
    const Limits& limits = (*tube.settings).*which_;
    if (limits == Limits()) continue;
    if (which_ == &queue::TubeSettings::put_rate) {
      entries_[tube.name] = {.limits = limits, .parts = full(limits), .at = ms_of(last)};
      continue;
    }
    Entry entry{.limits = limits, .empty_at = ms_of(first), .at = ms_of(last)};
    const std::string name =
        tube.head == 0 ? tube.name : lane(history_.state().tubes.at(tube.head).name, tube.name);
    const auto known = before.find(name);
    if (known != before.end() && known->second.limits == limits)
      entry.starts = known->second.starts;
    entries_[name] = std::move(entry);
  }
}

void LimitsModel::set(const std::string& tube, const Limits& limits, Now first, Now last) {
  const Limits before = of(tube);
  if (before == limits) return;
  const auto known = entries_.find(tube);
  const std::uint64_t had = known == entries_.end() ? 0 : parts_at(known->second, ms_of(first));
  entries_.erase(tube);
  if (limits == Limits()) return;
  Entry entry{.limits = limits, .at = ms_of(last), .set_at = last.mono_ns};
  if (limits.rate > 0 && before.rate == 0) {
    entry.parts = full(limits);
  } else if (limits.rate > 0 && before.period == limits.period) {
    entry.parts = std::min(had, full(limits));
  } else if (limits.rate > 0) {
    entry.parts = std::min(had / before.period, limits.burst) * limits.period;
  }
  entries_[tube] = std::move(entry);
}

const Limits& LimitsModel::of(const std::string& tube) const {
  static const Limits kNone;
  const auto found = entries_.find(tube);
  return found == entries_.end() ? kNone : found->second.limits;
}

void LimitsModel::start(const std::string& tube, std::size_t running, Now first, Now last) {
  const auto found = entries_.find(tube);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const std::uint64_t most = entry.limits.max_running;
  if (most > 0 && running >= most)
    throw Violation("of tube " + tube + " " + std::to_string(running) + " jobs run, and one more " +
                    "goes out; its max-running is " + std::to_string(most));
  if (entry.limits.rate == 0) return;
  take_token(entry, first, last);
  if (first.mono_ns < entry.set_at) return;  // it may have gone out before that
  entry.starts.push_back({ms_of(first), ms_of(last)});
  if (entry.starts.size() > kMostStarts) entry.starts.pop_front();
  ++entry.started;
  expect_rate(tube, entry);
}

void LimitsModel::start_anyway(const std::string& tube, Now first, Now last) {
  const auto found = entries_.find(tube);
  if (found != entries_.end()) take_token(found->second, first, last);
}

void LimitsModel::lose_tokens(const std::string& tube, Now now) {
  for (auto& [name, entry] : entries_) {
    if (name != tube && !name.starts_with(tube + '\n')) continue;
    entry.parts = 0;
    entry.at = ms_of(now);
  }
}

bool LimitsModel::lets_start(const std::string& tube, std::size_t running, Now now,
                             std::uint64_t slack) const {
  const auto found = entries_.find(tube);
  if (found == entries_.end()) return true;
  const Entry& entry = found->second;
  const std::uint64_t most = entry.limits.max_running;
  if (most > 0 && running >= most) return false;
  if (entry.limits.rate == 0) return true;
  return parts_at(entry, (now.mono_ns - slack) / kNsPerMs) >= entry.limits.period;
}

bool LimitsModel::lets_put(const std::string& tube, std::uint64_t jobs, Now now) const {
  const auto found = entries_.find(tube);
  if (found == entries_.end()) return true;
  return parts_at(found->second, ms_of(now)) >= jobs * found->second.limits.period;
}

std::uint64_t LimitsModel::most(const std::string& tube) const {
  const auto found = entries_.find(tube);
  if (found == entries_.end()) return UINT64_MAX;
  return full(found->second.limits) / found->second.limits.period;
}

// --- The bucket: a token has `period` parts, and `rate` of them come in a millisecond.

std::uint64_t LimitsModel::parts_at(const Entry& entry, std::uint64_t ms) {
  if (entry.limits.rate == 0) return 0;
  const std::uint64_t passed = ms - std::min(ms, entry.at);
  return std::min(full(entry.limits), entry.parts + passed * entry.limits.rate);
}

void LimitsModel::take_token(Entry& entry, Now first, Now last) {
  const std::uint64_t had = parts_at(entry, ms_of(first));
  entry.parts = had - std::min(had, entry.limits.period);
  entry.at = std::max(entry.at, ms_of(last));
}

// The last start was not too early.
void LimitsModel::expect_rate(const std::string& tube, const Entry& entry) {
  const auto& [most_running, rate, period, burst] = entry.limits;
  const auto refuse = [&tube](std::size_t jobs, std::uint64_t ms, const std::string& more) {
    throw Violation("of tube " + tube + " " + std::to_string(jobs) + " jobs have gone out in " +
                    std::to_string(ms) + " ms" + more + ", more than its rate allows");
  };
  std::uint64_t from = UINT64_MAX;
  std::uint64_t until = 0;
  std::size_t jobs = 0;
  for (auto start = entry.starts.rbegin(); start != entry.starts.rend(); ++start) {
    from = std::min(from, start->first);
    until = std::max(until, start->last);
    ++jobs;
    if (jobs * period >= burst * period + rate * (until - from + 1)) refuse(jobs, until - from, "");
  }
  const std::uint64_t last = entry.starts.back().last;
  if (entry.empty_at && entry.started * period > rate * (last - *entry.empty_at))
    refuse(entry.started, last - *entry.empty_at, " since the start of the server");
}

}  // namespace carillon::simulator
