#include "server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/error.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace rpc {

namespace asio = boost::asio;
using boost::system::error_code;

struct Server::Session {
  explicit Session(Tcp::socket socket) : channel(std::make_shared<Channel>(std::move(socket))) {}

  void answer(std::string_view reply) {
    channel->send(reply);
    ++answered;  // after send(): a status that counts this answer is then sent after it
  }

  const std::shared_ptr<Channel> channel;
  std::uint64_t requests = 0, unanswered = 0;
  std::atomic<std::uint64_t> answered{0};
};

Server::Server(asio::io_context& io, const ServerOptions& options)
    : options_(options),
      random_(options.seed),
      delay_(0, options.spread),
      never_(options.never),
      acceptor_(io, Tcp::endpoint(asio::ip::address_v4::loopback(), options.port)),
      timers_({.name = "rpc-delays"}) {
  accept();
}

void Server::accept() {
  acceptor_.async_accept([this](const error_code& error, Tcp::socket socket) {
    if (error && error != asio::error::connection_aborted) {
      std::fprintf(stderr, "rpc: no connections any more: %s\n", error.message().c_str());
      return;
    }
    if (!error) add(std::move(socket));
    accept();
  });
}

void Server::add(Tcp::socket socket) {
  const auto session = std::make_shared<Session>(std::move(socket));
  sessions_.insert(session);
  session->channel->start(
      [this, weak = std::weak_ptr(session)](std::uint64_t id, std::string_view rest) {
        if (const auto open = weak.lock()) on_request(open, id, rest);
      },
      [this, weak = std::weak_ptr(session)](const std::string&) { sessions_.erase(weak.lock()); });
}

void Server::on_request(const std::shared_ptr<Session>& session, std::uint64_t id,
                        std::string_view rest) {
  const auto method = rest.empty() ? Method{} : static_cast<Method>(rest.front());
  if (method == Method::kEcho) return echo(session, id, rest.substr(1));
  if (method != Method::kStatus) return session->channel->close();
  const std::uint64_t answered = session->answered;
  std::string status;
  append_number(status, session->requests);
  append_number(status, answered);
  append_number(status, session->requests - session->unanswered - answered);
  session->channel->send(make_reply(id, status));
}

void Server::echo(const std::shared_ptr<Session>& session, std::uint64_t id,
                  std::string_view payload) {
  ++session->requests;
  if (never_(random_)) {
    ++session->unanswered;
    return;
  }
  std::string reply = make_reply(id, payload);
  if (options_.median == 0) return session->answer(reply);
  const double delay = std::min(options_.slowest, options_.median * delay_(random_));
  timers_.schedule_after(std::chrono::duration<double>(delay),
                         [session, reply = std::move(reply)] { session->answer(reply); });
}

}  // namespace rpc
