// The attempt as a coroutine, and its time-out (post_connection.h).

// GCC 12 warns about a 0 used as a null pointer, in the frames of coroutines that it generates
// itself.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

#include "server/push/post_connection.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <stdexcept>

#include "base/text.h"
#include "carillon/require.h"

namespace carillon::server::push {

namespace {

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;

// Returns the message without the additions of Boost's system_error: the category, and where in the
// sources of Boost the error was made.
std::string message_of(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const boost::system::system_error*>(&error);
  return of_system == nullptr ? error.what() : of_system->code().message();
}

}  // namespace

PostConnection::PostConnection(asio::io_context& io, const AddressGuard& guard,
                               asio::ssl::context& tls, TargetUrl target)
    : io_(io), guard_(guard), tls_(tls), target_(std::move(target)), resolver_(io), timer_(io) {}

void PostConnection::post(PostRequest request, std::chrono::milliseconds time, Done done) {
  CARILLON_REQUIRE(!is_at_work() && (is_open() || attempts_ == 0), is_open(), attempts_);
  done_ = std::move(done);
  began_ = std::chrono::steady_clock::now();
  timer_.expires_after(time);
  const std::uint64_t attempt = ++attempts_;
  timer_.async_wait(
      [self = shared_from_this(), time, attempt](const boost::system::error_code& error) {
        // The timer may have expired just before the attempt ended, and another attempt is under
        // way.
        if (error || !self->done_ || self->attempts_ != attempt) return;
        self->close();
        self->finish({.error = fmt::format("no whole answer within {} ms", time.count())});
      });
  asio::co_spawn(
      io_,
      [self = shared_from_this(), request = std::move(request)]() mutable {
        return self->run(std::move(request));
      },
      asio::detached);
}

void PostConnection::abort() {
  done_ = {};
  timer_.cancel();
  close();
}

void PostConnection::close() {
  resolver_.cancel();
  if (!connection_) return;
  connection_->close();
  connection_.reset();
}

bool PostConnection::is_quiet() const {
  CARILLON_REQUIRE(is_open() && !is_at_work());
  return connection_->is_quiet();
}

// The time-out closes the connection: the operation under way fails then, and finds `done_` empty.
// It may still read the request, so it has a copy of its own.
asio::awaitable<void> PostConnection::run(PostRequest request) {
  PostResult result;
  bool may_be_stale = is_open();
  for (bool ended = false; !ended && done_;) {
    std::shared_ptr<ClientConnection> used;
    try {
      if (!is_open()) co_await connect();
      used = connection_;
      result = co_await exchange(request);
      ended = true;
    } catch (const std::exception& error) {
      close();
      ended = !std::exchange(may_be_stale, false) || (used && used->answer_began());
      result = {.error = message_of(error)};
    }
  }
  finish(std::move(result));
}

// An address needs no look-up. A look-up would wait for those of others.
asio::awaitable<std::vector<tcp::endpoint>> PostConnection::look_up() {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(target_.host, error);
  if (!error)
    co_return std::vector{
        tcp::endpoint(address, static_cast<std::uint16_t>(std::stoul(target_.port)))};
  const auto found = co_await resolver_.async_resolve(target_.host, target_.port,
                                                      asio::redirect_error(use_awaitable, error));
  if (error)
    throw std::runtime_error(fmt::format("cannot look up {}: {}", target_.host, error.message()));
  co_return std::vector<tcp::endpoint>(found.begin(), found.end());
}

asio::awaitable<void> PostConnection::connect() {
  std::string why = "there is no address of " + target_.host;
  const std::vector<tcp::endpoint> found = co_await look_up();
  for (const tcp::endpoint& to : found) {
    if (!done_) throw std::runtime_error(why);
    if (!guard_.allows(to.address())) {
      why = fmt::format("the address {} of {} {}", to.address().to_string(), target_.host,
                        kNotAllowed);
      continue;
    }
    const auto connection = std::make_shared<ClientConnection>(io_.get_executor());
    connection_ = connection;
    try {
      co_await connection->connect(to);
    } catch (const std::exception& error) {
      why = fmt::format("cannot connect to {}: {}", to.address().to_string(), message_of(error));
      continue;
    }
    if (target_.is_tls) co_await shake_hands(connection);
    co_return;
  }
  throw std::runtime_error(why);
}

asio::awaitable<void> PostConnection::shake_hands(std::shared_ptr<ClientConnection> connection) {
  std::string why;
  try {
    co_await connection->start_tls(tls_, target_.host);
    co_return;
  } catch (const std::exception& error) {
    why = message_of(error);
  }
  const std::string wrong = connection->wrong_certificate();
  throw std::runtime_error(
      wrong.empty()
          ? "TLS: " + why
          : fmt::format("TLS: the certificate is not good for {}: {}", target_.host, wrong));
}

asio::awaitable<PostResult> PostConnection::exchange(const PostRequest& request) {
  const std::shared_ptr<ClientConnection> connection = connection_;
  HttpRequest message{.method = "POST",
                      .target = target_.path,
                      .headers = {{"Host", target_.authority}},
                      .body = request.body};
  message.headers.insert(message.headers.end(), request.headers.begin(), request.headers.end());
  // One byte more shows whether the last character is whole.
  const HttpLimits limits{
      .header = kMostHeaderBytes, .body = kMostAnswerBytes, .kept = kExcerptBytes + 1};
  HttpAnswer answer = co_await connection->ask(message, limits);
  if (answer.status / 100 == 1) throw std::runtime_error("the answer is informational (1xx) alone");
  answer.body.resize(base::beginning(answer.body, kExcerptBytes).size());
  if (!connection->is_open()) close();
  co_return PostResult{.status = answer.status,
                       .excerpt = std::move(answer.body),
                       .retry_after = std::move(answer.retry_after)};
}

void PostConnection::finish(PostResult result) {
  timer_.cancel();
  if (!done_) return;
  result.took = std::chrono::steady_clock::now() - began_;
  if (is_open()) connection_->shrink();
  std::exchange(done_, {})(std::move(result));
}

}  // namespace carillon::server::push
