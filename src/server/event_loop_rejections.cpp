// EventLoop: TLS handshakes, rejected clients, and the files of tokens and certificates
// (event_loop.h).
#include <spdlog/spdlog.h>

#include <string_view>

#include "server/event_loop.h"
#include "server/net/clock.h"

namespace carillon::server {
namespace {

std::string_view describe(RejectReason reason) {
  switch (reason) {
    case RejectReason::kNone:
      return "";
    case RejectReason::kHttp:
      return "sent an HTTP request";
    case RejectReason::kUnknownCommands:
      return "sent unknown commands alone";
    case RejectReason::kWrongToken:
      return "showed a wrong token";
    case RejectReason::kTls:
      return "speaks TLS to a port without it (see --tls-cert)";
    case RejectReason::kPlainText:
      return "speaks no TLS to a port that does";
    case RejectReason::kNoTls:
      return "failed to begin with TLS";
  }
  return "";
}

}  // namespace

// A storm of handshakes takes this part of each turn, and no more: connected clients are served
// meanwhile.
void EventLoop::shake_hands(std::uint64_t until_ns) {
  for (std::uint64_t now = 0; !shaking_.empty() && now < until_ns; now = read_mono())
    shaking_.take_first()->shake_hands();
}

void EventLoop::turned_away(Connection& connection, RejectReason reason) {
  const auto held_back = rejections_[static_cast<std::size_t>(reason)].pass(read_mono());
  if (!held_back) return;
  const std::string_view why = connection.handshake_failure();
  spdlog::warn(
      "closed the connection of {}, which {}{}{}: nothing of it was carried out ({} more such "
      "since the last line)",
      connection.peer(), describe(reason), why.empty() ? "" : ": ", why, *held_back);
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

}  // namespace carillon::server
