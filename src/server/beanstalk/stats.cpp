// The YAML of the statistics and lists (stats.h).
#include "server/beanstalk/stats.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "carillon/require.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::uint64_t kNsInSecond = 1'000'000'000;
constexpr queue::Millis kMsInSecond = 1'000;

// Returns true if YAML has the character only as an escape (YAML 1.1 and 1.2, "Character Set"), or
// takes it for the end of a line.
bool needs_escape(char32_t c) {
  return c < ' ' || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
         c == 0xFFFE || c == 0xFFFF;
}

// Returns the text as a double-quoted scalar of YAML. REQUIRES: it is UTF-8.
std::string in_quotes(std::string_view text) {
  CARILLON_REQUIRE_DEBUG(is_utf8(text), text);
  std::string quoted = "\"";
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    if (needs_escape(c.code)) {
      const auto code = static_cast<unsigned>(c.code);
      quoted += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    } else {
      if (c.code == '"' || c.code == '\\') quoted += '\\';
      quoted += text.substr(0, c.size);
    }
    text.remove_prefix(c.size);
  }
  return quoted + '"';
}

// Returns `name: "text"`; if the text is not UTF-8, as YAML must be, `name_base64: "Base64"`.
std::string text_field(std::string_view name, std::string_view text) {
  return is_utf8(text) ? fmt::format("{}: {}\n", name, in_quotes(text))
                       : fmt::format("{}{}: \"{}\"\n", name, kBase64Suffix, to_base64(text));
}

class Yaml {
 public:
  // `begin`: the text to which the fields are added.
  explicit Yaml(std::string begin = "---\n") : text_(std::move(begin)) {}

  template <class Value>
  Yaml& field(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(text_), "{}: {}\n", name, value);
    return *this;
  }

  Yaml& quoted(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), "{}: \"{}\"\n", name, value);
    return *this;
  }

  // A client's text, of any bytes.
  Yaml& text(std::string_view name, std::string_view value) {
    text_ += text_field(name, value);
    return *this;
  }

  // The fields that are set.
  Yaml& policy(const queue::RetryPolicy& policy) {
    if (policy.max_attempts > 0 || policy.counts_empty) field("max-attempts", policy.max_attempts);
    if (policy.backoff > 0) field("backoff-ms", policy.backoff);
    if (policy.backoff > 0 && policy.backoff_max > policy.backoff)
      field("backoff-longest-ms", policy.backoff_max);
    if (policy.jitter > 0) field("jitter-percent", policy.jitter);
    if (policy.lost_fails) field("lost", "fails");
    return *this;
  }

  Yaml& limits(const queue::Limits& limits) {
    if (limits.max_running > 0) field("max-running", limits.max_running);
    if (limits.rate == 0) return *this;
    return field("rate", limits.rate)
        .field("rate-period-ms", limits.period)
        .field("burst", limits.burst);
  }

  Yaml& jobs_by_state(const queue::JobCounts& jobs) {
    return field("current-jobs-urgent", jobs.urgent)
        .field("current-jobs-ready", jobs.ready)
        .field("current-jobs-reserved", jobs.reserved)
        .field("current-jobs-delayed", jobs.delayed)
        .field("current-jobs-buried", jobs.buried);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string seconds(const timeval& time) {
  return fmt::format("{}.{:06}", time.tv_sec, time.tv_usec);
}

void command_counts(Yaml& yaml, const Counters& counters) {
  const auto count = [&](auto... verbs) { return (counters.of(verbs) + ...); };
  yaml.field("cmd-put", count(Verb::kPut, Verb::kPutMs, Verb::kPutAt, Verb::kPutJob))
      .field("cmd-peek", count(Verb::kPeek, Verb::kPeekJob))
      .field("cmd-peek-ready", count(Verb::kPeekReady))
      .field("cmd-peek-delayed", count(Verb::kPeekDelayed))
      .field("cmd-peek-buried", count(Verb::kPeekBuried))
      .field("cmd-reserve", count(Verb::kReserve))
      .field("cmd-reserve-with-timeout",
             count(Verb::kReserveWithTimeout, Verb::kReserveWithTimeoutMs))
      .field("cmd-delete", count(Verb::kDelete, Verb::kCancelJob))
      .field("cmd-release", count(Verb::kRelease, Verb::kReleaseMs))
      .field("cmd-use", count(Verb::kUse))
      .field("cmd-watch", count(Verb::kWatch))
      .field("cmd-ignore", count(Verb::kIgnore))
      .field("cmd-bury", count(Verb::kBury))
      .field("cmd-kick", count(Verb::kKick))
      .field("cmd-touch", count(Verb::kTouch))
      .field("cmd-stats", count(Verb::kStats))
      .field("cmd-stats-job", count(Verb::kStatsJob))
      .field("cmd-stats-tube", count(Verb::kStatsTube))
      .field("cmd-list-tubes", count(Verb::kListTubes))
      .field("cmd-list-tube-used", count(Verb::kListTubeUsed))
      .field("cmd-list-tubes-watched", count(Verb::kListTubesWatched))
      .field("cmd-pause-tube", count(Verb::kPauseTube));
}

}  // namespace

std::string_view name_of(queue::JobState state) {
  switch (state) {
    case queue::JobState::kDelayed:
      return "delayed";
    case queue::JobState::kReady:
      return "ready";
    case queue::JobState::kReserved:
      return "reserved";
    case queue::JobState::kBuried:
      return "buried";
  }
  return "invalid";
}

std::string_view name_of(queue::AtExpiry at_expiry) {
  return at_expiry == queue::AtExpiry::kDead ? "dead" : "drop";
}

std::string_view name_of(queue::Death death) {
  switch (death) {
    case queue::Death::kNone:
      return "no";
    case queue::Death::kAttempts:
      return "attempts";
    case queue::Death::kExpired:
      return "expired";
  }
  return "unknown";
}

std::string server_stats_yaml(Service& service) {
  const queue::Now now = service.now();
  const queue::EngineStats stats = service.engine().stats(now);
  const Counters& counters = service.counters();
  const Identity& identity = service.identity();
  const Feed::RecentLateness late = service.feed().lateness();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);

  Yaml yaml;
  yaml.jobs_by_state(stats.jobs);
  command_counts(yaml, counters);
  yaml.field("job-timeouts", stats.timeouts)
      .field("total-jobs", stats.jobs.total)
      .field("max-job-size", service.options().max_job_size)
      .field("current-tubes", stats.tubes)
      .field("current-connections", counters.connections)
      .field("current-producers", counters.producers)
      .field("current-workers", counters.workers)
      .field("current-waiting", stats.waiting)
      .field("total-connections", counters.total_connections)
      .field("pid", identity.pid)
      .quoted("version", identity.version)
      .field("rusage-utime", seconds(usage.ru_utime))
      .field("rusage-stime", seconds(usage.ru_stime))
      .field("uptime", (now.mono_ns - service.started_ns()) / kNsInSecond)
      // Carillon has no numbered log files, no migration between them and no limit to their size.
      // The sequence number of the last append stands for the records written.
      .field("binlog-oldest-index", 0)
      .field("binlog-current-index", 0)
      .field("binlog-records-migrated", 0)
      .field("binlog-records-written",
             service.options().durable ? service.engine().last_sequence() : 0)
      .field("binlog-max-size", 0)
      .field("draining", service.draining())
      .field("id", identity.id)
      .quoted("hostname", identity.hostname)
      .quoted("os", identity.os)
      .quoted("platform", identity.platform)
      .field("current-jobs-loaded", stats.jobs.loaded)
      .field("connections-closed-stalled", counters.closed_stalled)
      .field("connections-closed-idle", counters.closed_idle)
      .field("connections-closed-foreign", counters.closed_foreign)
      .field("total-fired", stats.fired)
      .field("total-reserved", stats.totals.reserved)
      .field("total-deleted", stats.totals.deleted)
      .field("total-failed", stats.totals.failed)
      .field("total-dead", stats.totals.dead)
      .field("total-dead-deleted", stats.totals.dead_deleted)
      .field("total-puts-too-fast", stats.totals.puts_too_fast)
      .field("lateness-p50-ms", late.half.value_or(0))
      .field("lateness-p99-ms", late.most.value_or(0))
      .field("lateness-max-ms", late.all.value_or(0));
  return yaml.take();
}

std::string tube_stats_yaml(const queue::TubeStats& tube) {
  Yaml yaml;
  yaml.quoted("name", tube.name)
      .jobs_by_state(tube.jobs)
      .field("total-jobs", tube.jobs.total)
      .field("current-using", tube.using_)
      .field("current-watching", tube.watching)
      .field("current-waiting", tube.waiting)
      .field("cmd-delete", tube.deletes)
      .field("cmd-pause-tube", tube.pauses)
      .field("pause", tube.pause / kMsInSecond)
      .field("pause-time-left", tube.pause_left / kMsInSecond)
      .policy(tube.settings.retry)
      .limits(tube.settings.limits);
  if (const queue::Limits& puts = tube.settings.put_rate; puts.rate > 0) {
    yaml.field("put-rate", puts.rate)
        .field("put-rate-period-ms", puts.period)
        .field("put-burst", puts.burst)
        .field("total-puts-too-fast", tube.puts_too_fast);
  }
  if (tube.settings.retention > 0) {
    yaml.field("retention-ms", tube.settings.retention)
        .field("total-dead-deleted", tube.dead_deleted);
  }
  if (tube.settings.refuses_puts) yaml.field("puts", "refused");
  if (tube.groups > 0) yaml.field("current-groups", tube.groups);
  return yaml.take();
}

std::string job_stats_yaml(const queue::JobStats& job) {
  Yaml yaml;
  yaml.field("id", job.record.id)
      .quoted("tube", job.tube)
      .field("state", name_of(job.state))
      .field("pri", job.record.priority)
      .field("age", job.age / kMsInSecond)
      .field("delay", job.record.delay / kMsInSecond)
      .field("ttr", job.record.ttr / kMsInSecond)
      .field("time-left", job.time_left / kMsInSecond)
      .field("file", 0)
      .field("reserves", job.record.history.reserves)
      .field("timeouts", job.record.history.timeouts)
      .field("releases", job.record.history.releases)
      .field("buries", job.record.history.buries)
      .field("kicks", job.record.history.kicks);
  if (!job.group.empty()) yaml.text("group", job.group);
  if (!job.record.extras) return yaml.policy(job.retry).take();
  const queue::JobExtras& extras = *job.record.extras;
  if (!extras.key.empty()) yaml.text("key", extras.key);
  yaml.policy(job.retry).field("attempts", extras.attempts).field("dead", name_of(extras.death));
  if (extras.cancel_asked) yaml.field("cancel-asked", true);
  if (extras.expires != 0) {
    yaml.field("expires-at", format_timestamp(std::min(extras.expires, queue::kLastDue)))
        .field("at-expiry", name_of(extras.at_expiry));
  }
  return yaml.take();
}

std::string list_yaml(const std::vector<std::string>& items) {
  std::string text(kListHead);
  for (const std::string& item : items) text.append(kItemHead).append(item).append("\n");
  return text;
}

}  // namespace carillon::server::beanstalk
