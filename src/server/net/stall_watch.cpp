// StallWatch, on an idle tracker (stall_watch.h).
#include "server/net/stall_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace carillon::server {
namespace {

constexpr std::uint64_t kNsInTick = 1'000'000;
// One look() hands over at most this many; then the loop does other work.
constexpr std::size_t kFoundAtOnce = 16;

using Tracker = IdleTracker<Watched*>;

void check(std::chrono::milliseconds timeout) {
  const auto most = static_cast<std::int64_t>(Tracker::kLongestTimeout);
  if (timeout.count() < 0 || timeout.count() > most)
    throw std::invalid_argument(
        fmt::format("a time-out of {} ms; it must be in 0 .. {}", timeout.count(), most));
}

// A time-out begins at the first tick at or after a moment, and ends by the last tick that has
// begun. So rounding never makes a time-out shorter.
Tick tick_after(std::uint64_t mono_ns) {
  return (mono_ns + kNsInTick - 1) / kNsInTick;
}
Tick tick_of(std::uint64_t mono_ns) {
  return mono_ns / kNsInTick;
}

}  // namespace

std::chrono::milliseconds StallWatch::Timeouts::of(Awaits what) const {
  switch (what) {
    case Awaits::kNothing:
      return {};
    case Awaits::kHead:
    case Awaits::kRest:
    case Awaits::kReading:
      return stall;
    case Awaits::kCommand:
      return idle;
    case Awaits::kToken:
      return stall.count() == 0 || idle.count() == 0 ? std::max(stall, idle)
                                                     : std::min(stall, idle);
  }
  return {};
}

std::string_view describe(Awaits what) {
  switch (what) {
    case Awaits::kCommand:
      return "sent no command";
    case Awaits::kHead:
      return "sent no whole line or header of a command that it had begun";
    case Awaits::kReading:
      return "read no replies";
    case Awaits::kToken:
      return "showed no token";
    default:
      return "sent no more of a command that it had begun";
  }
}

StallWatch::StallWatch(const Timeouts& timeouts, std::size_t connections,
                       std::function<std::uint64_t()> mono_ns)
    : timeouts_(timeouts),
      mono_ns_(std::move(mono_ns)),
      tracker_(Ticks{Tracker::kLongestTimeout}, tick_of(mono_ns_()), MostConnections{connections}) {
  check(timeouts.stall);
  check(timeouts.idle);
}

Tick StallWatch::limit_of(Awaits what) const {
  return static_cast<Tick>(timeouts_.of(what).count());
}

void StallWatch::active(Watched& connection) {
  const Tick limit = limit_of(connection.awaits());
  if (connection.timeout_ == 0) {
    if (limit != 0) track(connection, limit, tick_after(mono_ns_()));
    return;
  }
  tracker_.touch(connection.id_, tick_after(mono_ns_()));
  if (limit == 0 || limit >= connection.timeout_) return;
  tracker_.set_timeout(connection.id_, Ticks{limit});
  connection.timeout_ = limit;
}

void StallWatch::forget(Watched& connection) noexcept {
  if (connection.timeout_ != 0) tracker_.remove(connection.id_);
  connection.timeout_ = 0;
}

void StallWatch::track(Watched& connection, Tick timeout, Tick since) {
  connection.id_ = tracker_.add(&connection, Ticks{timeout}, since);
  connection.timeout_ = timeout;
}

void StallWatch::look(const std::function<void(Watched&, Awaits)>& on_stalled) {
  if (tracker_.empty()) return;
  const Tick now = tick_of(mono_ns_());
  tracker_.advance(
      now, [&](IdleId, Watched* connection) { judge(*connection, now, on_stalled); }, kFoundAtOnce);
}

// The connection was quiet for the time-out that it was tracked with. By now it may await something
// with a longer time-out; then it is tracked for the rest of that one.
void StallWatch::judge(Watched& connection, Tick now,
                       const std::function<void(Watched&, Awaits)>& on_stalled) {
  const Tick quiet = std::exchange(connection.timeout_, 0);
  const Awaits what = connection.awaits();
  const Tick limit = limit_of(what);
  if (limit == 0) return;
  if (limit > quiet) return track(connection, limit, now - quiet);
  if (connection.shows_life()) return track(connection, limit, now + 1);
  on_stalled(connection, what);
}

std::optional<std::uint64_t> StallWatch::next_wakeup() const {
  const std::optional<Tick> tick = tracker_.next_wakeup();
  return tick ? std::optional(*tick * kNsInTick) : std::nullopt;
}

}  // namespace carillon::server
