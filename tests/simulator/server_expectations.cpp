// What is looked at again and again while the simulated server works (server.h): that nothing is
// left of what is gone, and that nothing waits which should have happened.

#include "server/beanstalk/session.h"
#include "simulator/clock.h"
#include "simulator/server.h"

namespace carillon::simulator {

namespace {

using Wants = server::beanstalk::Session::Wants;

queue::Now clocks() {
  return {.utc_ns = virtual_time().utc_ns, .mono_ns = virtual_time().mono_ns};
}

}  // namespace

// Whoever has no body under way, and few replies, takes nothing of the memory of all.
void Server::expect_memory_given_back() {
  for (const auto& connection : connections_) {
    server::beanstalk::Session& session = connection->session();
    session.count_memory();
    const bool has_body = session.mid_command() || session.wants() == Wants::kDelivery ||
                          connection->large_reply().under_way();
    if (has_body || session.replies().memory() > server::kOwnReplies) return;
  }
  if (service_.memory().used() > 0) throw Violation("memory is in use that nobody needs");
}

void Server::expect_no_remains() const {
  if (!died() && !excuses().fails) model_.expect_no_remains();
}

// The ends of reservations are stored at once; if that fails or the store has no room, it is tried
// again soon.
void Server::expect_no_old_ends() {
  constexpr int kManyTurns = 20;
  if (!model_.has_old_end(clocks())) {
    turns_with_old_ends_ = 0;
  } else if (++turns_with_old_ends_ > kManyTurns && !excuses().fails) {
    throw Violation("a reservation is over, and that is not stored");
  }
}

// The same for occurrences of schedules, which wait while puts are refused.
void Server::expect_no_old_occurrences() {
  constexpr int kManyTurns = 20;
  constexpr std::uint64_t kLongNs = 5'000'000'000;
  if (!model_.has_old_occurrence(clocks()) || service_.takes_no_jobs()) {
    turns_with_old_occurrences_ = 0;
    return;
  }
  if (turns_with_old_occurrences_++ == 0) old_occurrences_since_ns_ = virtual_time().mono_ns;
  const bool long_ago = virtual_time().mono_ns - old_occurrences_since_ns_ > kLongNs;
  if (turns_with_old_occurrences_ > kManyTurns && long_ago && !excuses().fails)
    throw Violation("a schedule has occurred, and nothing happens");
}

// Keys whose windows are over are forgotten within about a second. If the store has no room, that
// is tried again after a second; the other threads have run now and then, so it has room soon.
void Server::expect_no_old_keys() {
  constexpr queue::UtcMs kOld = 2'000;
  constexpr std::uint64_t kLongNs = 5'000'000'000;
  constexpr int kManyTurns = 20;
  const auto end = history_.first_end_of_keys();
  if (!end || *end + kOld >= virtual_time().utc_ns / 1'000'000) {
    turns_with_old_keys_ = 0;
    return;
  }
  if (turns_with_old_keys_++ == 0) old_keys_since_ns_ = virtual_time().mono_ns;
  const bool long_ago = virtual_time().mono_ns - old_keys_since_ns_ > kLongNs;
  if (long_ago && turns_with_old_keys_ > kManyTurns && !died() && !excuses().fails)
    throw Violation("a key whose window is over is not forgotten");
}

}  // namespace carillon::simulator
