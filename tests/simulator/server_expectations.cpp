// What is checked again and again while the simulated server works (server.h): that nothing is left
// of what is gone, and that nothing waits which should have happened.

#include "server/net/protocol.h"
#include "simulator/clock.h"
#include "simulator/server.h"

namespace carillon::simulator {

namespace {

using Wants = server::Protocol::Wants;

}  // namespace

// A connection without a body or a list under way, and with few replies, takes nothing of the
// memory of all. What the audit remembers stays.
void Server::expect_memory_given_back() {
  for (const auto& connection : connections_) {
    server::Protocol& session = connection->session();
    session.count_memory();
    const bool has_body = session.mid_command() || session.wants() == Wants::kDelivery ||
                          connection->large_reply().under_way() || connection->has_used_command();
    if (has_body || session.replies().memory() > server::kOwnReplies) return;
  }
  if (service_.memory().used() > service_.feed().memory())
    throw Violation("memory is in use that nobody needs");
}

void Server::expect_no_remains() const {
  if (!died() && !excuses().fails) model_.expect_no_remains();
}

bool Server::Overdue::for_long(bool is_late) {
  constexpr std::uint64_t kTryAgain = 1'100'000'000;
  constexpr int kManyTimes = 20;
  const std::uint64_t now = virtual_time().mono_ns;
  if (!is_late) {
    times_ = 0;
  } else if (times_ == 0 || now - last_ns_ > kTryAgain) {
    ++times_;
    last_ns_ = now;
  }
  return times_ > kManyTimes;
}

// The ends of reservations and of jobs are stored at once, or when the store has room again.
void Server::expect_no_old_ends() {
  constexpr std::uint64_t kTryAgain = 1'100'000'000;
  const bool is_old = model_.has_old_end(clocks()) || model_.has_old_dead(clocks());
  if (old_ends_.for_long(is_old) && !excuses().fails)
    throw Violation("a reservation is over, or a job was dead for long, and that is not stored");
  const bool had_room = virtual_time().mono_ns > history_.full_at() + kTryAgain;
  if (had_room && !excuses().unordered && !died() && model_.has_old_expiry(clocks()))
    throw Violation("a job has expired, and that is not stored");
}

// The same for occurrences of schedules, which wait while puts are refused.
void Server::expect_no_old_occurrences() {
  const bool is_late = model_.has_old_occurrence(clocks()) && !service_.takes_no_jobs();
  if (old_occurrences_.for_long(is_late) && !excuses().fails)
    throw Violation("a schedule has occurred, and nothing happens");
}

// Keys whose windows are over are forgotten within about a second.
void Server::expect_no_old_keys() {
  constexpr queue::UtcMs kOld = 2'000;
  const auto end = history_.first_end_of_keys();
  const bool is_late = end && *end + kOld < history_.steady_ns(clocks()) / 1'000'000;
  if (old_keys_.for_long(is_late) && !died() && !excuses().fails)
    throw Violation("a key whose window is over is not forgotten");
}

}  // namespace carillon::simulator
