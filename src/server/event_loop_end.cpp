// EventLoop: what happens at a signal (a drain, a reload, the end), and from the failure of the
// store to the end (event_loop.h).
#include <spdlog/spdlog.h>

#include <boost/system/error_code.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/event_loop.h"
#include "server/net/clock.h"
#include "server/second_signal.h"

namespace carillon::server {
namespace {

using std::chrono::milliseconds;

// How long a stopping server waits for clients to read their last replies.
constexpr milliseconds kPatience{5'000};
constexpr milliseconds kPatienceAfterFailure{1'000};

}  // namespace

void EventLoop::await_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error) on_signal(signal);
  });
}

void EventLoop::on_signal(int signal) {
  if (signal == SIGUSR1) {
    if (!service_.draining()) spdlog::info("draining: every put is refused from now on (SIGUSR1)");
    service_.drain();
    return await_signal();
  }
  if (signal == SIGHUP && (tokens_ != nullptr || tls_ != nullptr)) {
    reload();
    return await_signal();
  }
  spdlog::info("stopping (SIG{}), with {} connections open", ::sigabbrev_np(signal),
               connections_.size());
  // A second SIGTERM or SIGINT ends the process at once. A second SIGHUP does not: a terminal that
  // closes sends it twice, and may send it after another signal.
  count_as_first_signal();
  stopping_ = true;
  // Attempts to push get some time. Connections are served meanwhile, and no new ones come.
  for (const auto& acceptor : acceptors_) acceptor->stop();
  pusher_.stop();
}

void EventLoop::reload() {
  if (tokens_ != nullptr) reload_tokens();
  if (tls_ == nullptr) return;
  try {
    tls_->reload();
  } catch (const base::StartError& error) {
    return spdlog::error("{}; the certificate stays as it was", error.what());
  }
  log_certificate(*tls_);
}

// Closes the connections whose token is gone. All are checked in one turn, which takes a
// millisecond for ten thousand: an operator has asked for it.
void EventLoop::reload_tokens() {
  try {
    tokens_->reload();
  } catch (const base::StartError& error) {
    return spdlog::error("{}; the tokens stay as they were", error.what());
  }
  std::size_t closed = 0;
  for (const auto& connection : open_connections()) {
    if (connection->session().may_go_on()) continue;
    ++closed;
    connection->finish();
    replying_.add(*connection);
  }
  spdlog::info("read {} tokens from {}; closed {} connections whose token is gone", tokens_->size(),
               tokens_->path(), closed);
}

// Runs before each flush of replies: after a failure no client may get a reply about a change, or a
// job.
void EventLoop::look_at_store() {
  fail(store_.failure());
}

void EventLoop::fail(const std::string& why) {
  if (why.empty() || std::exchange(failed_, true)) return;
  spdlog::critical(
      "the store has failed: {}; what the disk holds is unknown now, so the server stops, and "
      "answers INTERNAL_ERROR to every command that it has not answered",
      why);
}

// Another server has the jobs now, so nothing is answered: it answers the clients when they have
// connected again.
void EventLoop::depose(const std::string& why) {
  if (std::exchange(deposed_, true)) return;
  spdlog::warn("another server owns the jobs now: {}; {} connections are closed without an answer",
               why, connections_.size());
}

void EventLoop::on_unavailable(const std::string& why) {
  spdlog::error("the log is unavailable: {}; {}", why,
                stopping_ ? "what is not answered may have to be sent again"
                          : "replies wait, and new commands are refused after 2 s; trying again");
  service_.set_unavailable_since(read_mono());
}

void EventLoop::on_available() {
  if (!service_.is_unavailable()) return;
  spdlog::info("the log is available again");
  service_.set_unavailable_since(std::nullopt);
}

void EventLoop::end() {
  for (const auto& acceptor : acceptors_) acceptor->stop();
  if (deposed_) return;  // the destructor closes the connections
  if (!failed_) close_engine();
  if (deposed_) return;
  if (failed_) refuse_what_is_not_durable();
  hang_up(failed_ ? kPatienceAfterFailure : kPatience);
}

// The change of close() is also the barrier of the last answers.
void EventLoop::close_engine() {
  for (const auto& connection : open_connections()) connection->session().close();
  try {
    engine_.close();
  } catch (const queue::Deposed& error) {
    return depose(error.what());
  } catch (const queue::StoreError& error) {
    spdlog::error(
        "the last change could not be written; no job is lost, but some ids are left out: {}",
        error.what());
  }
  commit_.request(engine_.last_sequence());
  commit_.close();
  io_.poll();  // runs on_report() if the last sync failed
  look_at_store();
}

std::vector<std::shared_ptr<Connection>> EventLoop::open_connections() const {
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [id, connection] : connections_) all.push_back(connection);
  return all;
}

void EventLoop::refuse_what_is_not_durable() {
  for (const auto& connection : open_connections()) {
    connection->session().close();  // so that a kick that is under way gets its answer
    connection->session().replies().replace_held(connection->session().failure_reply());
  }
  // No connection waits for a change now. A client that reads slowly should get all its replies.
  for (; !held_.empty(); held_.pop()) held_.top().connection->has_replies_held = false;
}

void EventLoop::hang_up(milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (const auto& connection : open_connections()) {
    connection->finish();
    replying_.add(*connection);
  }
  while (!connections_.empty() && std::chrono::steady_clock::now() < until) {
    look_for_durable();
    flush(UINT64_MAX);
    read_on(UINT64_MAX);
    if (!connections_.empty()) io_.run_one_until(until);
  }
  for (const auto& connection : open_connections()) connection->abort();
}

}  // namespace carillon::server
