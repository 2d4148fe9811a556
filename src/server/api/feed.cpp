// Feed: samples, and events as texts (feed.h).
#include "server/api/feed.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <utility>

#include "server/api/status.h"
#include "server/metrics/metrics.h"
#include "server/service.h"
#include "server/text/json_text.h"
#include "server/text/json_value.h"
#include "server/text/whole_number.h"

namespace carillon::server {
namespace {

namespace json = boost::json;

using queue::Lateness;

constexpr std::uint64_t kSampleNs = 1'000'000'000;
// A sample shows the lateness of the last ten seconds.
constexpr std::size_t kMarks = 11;
// A client that gets nothing for longer than this may think that the connection is dead.
constexpr std::uint64_t kHeartbeat = 15;  // samples
constexpr std::size_t kLongestText = 200;

SampleTotals totals_of(const queue::EngineStats& stats) {
  return {.put = stats.jobs.total,
          .reserved = stats.totals.reserved,
          .acked = stats.totals.deleted,
          .failed = stats.totals.failed,
          .dead = stats.totals.dead,
          .kicked = stats.totals.kicked,
          .timed_out = stats.timeouts};
}

double rounded(double number) {
  return std::round(number * 10) / 10;
}

// Returns the bound of the bucket in which this part of the jobs ends, in ms. Above the last bound:
// the last bound.
std::optional<queue::Millis> late(
    const std::array<std::uint64_t, Lateness::kBounds.size() + 1>& jobs, double part) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : jobs) all += count;
  if (all == 0) return std::nullopt;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(all) * part));
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < Lateness::kBounds.size(); ++i) {
    so_far += jobs[i];
    if (so_far >= wanted) return Lateness::kBounds[i];
  }
  return Lateness::kBounds.back();
}

std::size_t bytes_of(const Feed::Event& event) {
  return sizeof(event) + event.text.size();
}

std::size_t bytes_of(const Action& action) {
  return sizeof(action) + action.who.size() + action.action.size() + action.target.size() +
         action.outcome.size();
}

// Drops control characters: the text becomes a part of a line of the log.
std::string shortened(std::string_view text) {
  std::string cut(text.substr(0, kLongestText));
  std::replace_if(
      cut.begin(), cut.end(), [](char c) { return c == 127 || (c >= 0 && c < 32); }, '?');
  return to_utf8(cut);
}

}  // namespace

SampleLateness shown_lateness(const Feed::RecentLateness& lateness) {
  return {.p50 = lateness.half, .p99 = lateness.most, .max = lateness.all};
}

Feed::Feed(Service& service) : service_(service), memory_(service.memory()) {}

Feed::~Feed() = default;

// If the server has slept, nothing has changed since the last sample. So the next sample counts
// only its own second.
void Feed::wake(queue::Now now) {
  was_busy_ = true;
  if (!marks_.empty() && now.mono_ns < next_sample_ + kSampleNs) return;
  next_sample_ = listeners_.empty() ? now.mono_ns + kSampleNs : now.mono_ns;
  Mark last = marks_.empty() ? Mark{} : marks_.back();
  last.mono_ns = next_sample_ - std::min(next_sample_, kSampleNs);
  marks_.clear();
  marks_.push_back(last);
}

bool Feed::work(queue::Now now) {
  if (!was_busy_) wake(now);
  if (!scrape_ && now.mono_ns < next_sample_) return std::exchange(has_news_, false);
  try {
    if (!scrape_ && !listeners_.empty()) {
      scrape_ = std::make_unique<metrics::Scrape>(service_, *listeners_.begin());
      next_sample_ = now.mono_ns;
      return std::exchange(has_news_, false);
    }
    if (scrape_ && !scrape_->look()) return std::exchange(has_news_, false);
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
  }
  finish_sample(now);
  scrape_.reset();
  return std::exchange(has_news_, false);
}

void Feed::finish_sample(queue::Now now) {
  next_sample_ = std::max(next_sample_ + kSampleNs, now.mono_ns + kSampleNs / 2);
  was_busy_ = false;
  const std::string text = sample(now);
  marks_.push_back({now.mono_ns, service_.engine().stats()});
  if (marks_.size() > kMarks) marks_.pop_front();
  bytes_of_others_ += sizeof(text) + text.size();
  samples_.push_back(text);
  if (samples_.size() > kMostSamples) {
    bytes_of_others_ -= sizeof(text) + samples_.front().size();
    samples_.pop_front();
  }
  ++samples_taken_;
  add_event("stats", text, 0);
}

std::string Feed::sample(queue::Now now) const {
  const queue::EngineStats stats = service_.engine().stats();
  const Mark& before = marks_.back();
  const double passed =
      std::max(0.001, static_cast<double>(now.mono_ns - before.mono_ns) / kSampleNs);
  const auto rate = [&](std::uint64_t then, std::uint64_t here) {
    return rounded(static_cast<double>(here - then) / passed);
  };
  const auto next_due = scrape_ ? scrape_->next_due() : std::nullopt;
  const Sample told{.at = {now.utc_ns / 1'000'000},
                    .jobs = {.delayed = stats.jobs.delayed,
                             .ready = stats.jobs.ready,
                             .reserved = stats.jobs.reserved,
                             .buried = stats.jobs.buried},
                    .tubes = stats.tubes,
                    .connections = service_.counters().connections,
                    .waiting = stats.waiting,
                    .totals = totals_of(stats),
                    .rates = {.put = rate(before.stats.jobs.total, stats.jobs.total),
                              .fired = rate(before.stats.fired, stats.fired),
                              .acked = rate(before.stats.totals.deleted, stats.totals.deleted)},
                    .lateness_ms = shown_lateness(lateness()),
                    .oldest_ready_age_ms = scrape_ ? scrape_->oldest_ready_age() : std::nullopt,
                    .next_due = next_due ? std::optional(Moment{*next_due}) : std::nullopt,
                    .memory = service_.memory().used(),
                    .draining = service_.draining()};
  return json_text(write(told));
}

Feed::RecentLateness Feed::lateness() const {
  auto jobs = service_.engine().stats().lateness.jobs;
  if (!marks_.empty()) {
    const auto& before = marks_.front().stats.lateness.jobs;
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i] -= before[i];
  }
  constexpr double kMost = 0.99;
  return {.half = late(jobs, 0.5), .most = late(jobs, kMost), .all = late(jobs, 1)};
}

void Feed::tell(Action action) {
  for (std::string* text : {&action.who, &action.action, &action.target, &action.outcome})
    *text = shortened(*text);
  spdlog::info("audit: {}: {} {}: {}", action.who, action.action, action.target, action.outcome);
  add_event("audit", json_text(write(action)), service_.engine().last_sequence());
  bytes_of_others_ += bytes_of(action);
  actions_.push_back(std::move(action));
  ++actions_told_;
  if (actions_.size() > kMostActions) {
    bytes_of_others_ -= bytes_of(actions_.front());
    actions_.pop_front();
  }
  memory_.set(bytes_of_events_ + bytes_of_others_);
}

void Feed::add_event(std::string_view kind, std::string_view json, queue::Sequence durable_at) {
  const bool is_heartbeat = kind == "stats" && samples_taken_ % kHeartbeat == 0;
  events_.push_back(
      {.number = ++last_event_,
       .text = fmt::format("{}id: {}-{}\nevent: {}\ndata: {}\n\n", is_heartbeat ? ":\n" : "",
                           service_.identity().id, last_event_, kind, json),
       .is_audit = kind == "audit",
       .durable_at = durable_at});
  bytes_of_events_ += bytes_of(events_.back());
  while (events_.size() > kMostEvents || bytes_of_events_ > kMostBytes) {
    bytes_of_events_ -= bytes_of(events_.front());
    events_.pop_front();
  }
  memory_.set(bytes_of_events_ + bytes_of_others_);
  has_news_ = true;
}

const Feed::Event* Feed::after(std::uint64_t number) const {
  if (number >= last_event_ || events_.empty()) return nullptr;
  const std::uint64_t first = events_.front().number;
  return &events_[number < first ? 0 : static_cast<std::size_t>(number + 1 - first)];
}

std::optional<std::uint64_t> Feed::number_of(std::string_view id) const {
  const std::size_t hyphen = id.find('-');
  if (hyphen == std::string_view::npos) return std::nullopt;
  const auto number = whole_number<std::uint64_t>(id.substr(hyphen + 1));
  if (!number) return std::nullopt;
  return id.substr(0, hyphen) == service_.identity().id ? *number : 0;
}

}  // namespace carillon::server
