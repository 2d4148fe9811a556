// The attempt as a coroutine, and its time-out (post_connection.h).

// GCC 12 warns about a 0 used as a null pointer, in the frames of coroutines that it generates
// itself.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

#include "server/push/post_connection.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "carillon/require.h"

namespace carillon::server::push {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::use_awaitable;
using asio::ip::tcp;

// Informational answers (1xx) before the answer, at most.
constexpr int kMostInformational = 5;

using Parser = http::response_parser<http::buffer_body>;

// Returns the message without the additions of Boost's system_error: the category, and where in the
// sources of Boost the error was made.
std::string message_of(const std::exception& error) {
  const auto* const of_system = dynamic_cast<const boost::system::system_error*>(&error);
  return of_system == nullptr ? error.what() : of_system->code().message();
}

}  // namespace

PostConnection::PostConnection(asio::io_context& io, const AddressGuard& guard,
                               asio::ssl::context& tls, TargetUrl target)
    : io_(io),
      guard_(guard),
      tls_(tls),
      target_(std::move(target)),
      resolver_(io),
      timer_(io),
      buffer_(kMostHeaderBytes + kMostAnswerBytes) {}

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
  if (!stream_) return;
  beast::get_lowest_layer(*stream_).close();
  stream_.reset();
}

bool PostConnection::is_quiet() const {
  CARILLON_REQUIRE(is_open() && !is_at_work());
  const int socket = beast::get_lowest_layer(*stream_).socket().native_handle();
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

// The time-out closes the connection: the operation under way fails then, and finds `done_` empty.
// It may still read the request, so it has a copy of its own.
asio::awaitable<void> PostConnection::run(PostRequest request) {
  PostResult result;
  bool may_be_stale = is_open();
  for (bool ended = false; !ended && done_;) {
    try {
      answer_began_ = false;
      if (!is_open()) co_await connect();
      result = co_await exchange(request);
      ended = true;
    } catch (const std::exception& error) {
      close();
      ended = !std::exchange(may_be_stale, false) || answer_began_;
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
    const auto stream = std::make_shared<Stream>(io_, tls_);
    stream_ = stream;
    boost::system::error_code error;
    co_await stream->next_layer().async_connect(to, asio::redirect_error(use_awaitable, error));
    if (error) {
      why = fmt::format("cannot connect to {}: {}", to.address().to_string(), error.message());
      continue;
    }
    stream->next_layer().socket().set_option(tcp::no_delay(true), error);
    if (target_.is_tls) co_await shake_hands(stream);
    co_return;
  }
  throw std::runtime_error(why);
}

asio::awaitable<void> PostConnection::shake_hands(std::shared_ptr<Stream> stream) {
  boost::system::error_code error;
  asio::ip::make_address(target_.host, error);
  SSL* const ssl = stream->native_handle();
  const bool is_name = static_cast<bool>(error);
  // A dot at the end of the name is only for the look-up (RFC 6066, 3).
  std::string name = target_.host;
  if (name.ends_with('.')) name.pop_back();
  // The same as SSL_set_tlsext_host_name(), without its cast.
  if (is_name &&
      SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) != 1)
    throw std::runtime_error("TLS: the host name cannot be sent");
  stream->set_verify_mode(asio::ssl::verify_peer);
  stream->set_verify_callback(asio::ssl::host_name_verification(name));
  co_await stream->async_handshake(asio::ssl::stream_base::client,
                                   asio::redirect_error(use_awaitable, error));
  if (!error) co_return;
  const long verified = SSL_get_verify_result(ssl);
  throw std::runtime_error(
      verified == X509_V_OK ? fmt::format("TLS: {}", error.message())
                            : fmt::format("TLS: the certificate is not good for {}: {}",
                                          target_.host, X509_verify_cert_error_string(verified)));
}

asio::awaitable<PostResult> PostConnection::exchange(const PostRequest& request) {
  const std::shared_ptr<Stream> stream = stream_;
  if (target_.is_tls) co_return co_await exchange_over(*stream, request);
  co_return co_await exchange_over(stream->next_layer(), request);
}

template <typename Layer>
asio::awaitable<void> PostConnection::send(Layer& layer, const PostRequest& request) {
  http::request<http::span_body<const char>> message(http::verb::post, target_.path, 11);
  message.set(http::field::host, target_.authority);
  message.set(http::field::user_agent, "Carillon/" CARILLON_VERSION);
  for (const auto& [name, value] : request.headers) message.set(name, value);
  message.body() = {request.body.data(), request.body.size()};
  message.prepare_payload();
  co_await http::async_write(layer, message, use_awaitable);
}

template <typename Layer>
asio::awaitable<PostResult> PostConnection::exchange_over(Layer& layer,
                                                          const PostRequest& request) {
  co_await send(layer, request);
  std::optional<Parser> parser;
  for (int n = 0; n <= kMostInformational; ++n) {
    parser.emplace();
    parser->header_limit(kMostHeaderBytes);
    parser->body_limit(boost::none);
    boost::system::error_code error;
    co_await http::async_read_header(layer, buffer_, *parser,
                                     asio::redirect_error(use_awaitable, error));
    answer_began_ = answer_began_ || parser->got_some() || buffer_.size() > 0;
    if (error) throw boost::system::system_error(error);
    const unsigned status = parser->get().result_int();
    if (status / 100 != 1 || status == 101) break;
  }
  PostResult result{.status = parser->get().result_int(),
                    .retry_after = std::string(parser->get()[http::field::retry_after])};
  if (result.status / 100 == 1) throw std::runtime_error("the answer is informational (1xx) alone");
  std::array<char, 4'096> piece{};
  std::size_t total = 0;
  while (!parser->is_done() && total < kMostAnswerBytes) {
    auto& body = parser->get().body();
    body.data = piece.data();
    body.size = piece.size();
    boost::system::error_code error;
    co_await http::async_read_some(layer, buffer_, *parser,
                                   asio::redirect_error(use_awaitable, error));
    if (error && error != http::error::need_buffer) throw boost::system::system_error(error);
    const std::size_t got = piece.size() - parser->get().body().size;
    // One byte more shows whether the last character is whole.
    result.excerpt.append(piece.data(), std::min(got, kExcerptBytes + 1 - result.excerpt.size()));
    total += got;
  }
  result.excerpt.resize(base::beginning(result.excerpt, kExcerptBytes).size());
  if (!parser->is_done() || !parser->keep_alive() || buffer_.size() > 0) close();
  co_return result;
}

void PostConnection::finish(PostResult result) {
  timer_.cancel();
  if (!done_) return;
  result.took = std::chrono::steady_clock::now() - began_;
  if (is_open()) buffer_.shrink_to_fit();
  std::exchange(done_, {})(std::move(result));
}

}  // namespace carillon::server::push
