// Connecting, TLS and HTTP as coroutines (client_connection.h).

// GCC 12 finds a 0 as a null pointer in the frames of coroutines that it writes itself.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

#include "server/net/client_connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>

namespace carillon::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::use_awaitable;
using boost::system::error_code;

namespace {

// Informational answers (1xx) before the answer, at most.
constexpr int kMostInformational = 5;
// A body of at most this many bytes is sent with the header.
constexpr std::size_t kSmallBody = 4 << 10;

asio::generic::stream_protocol::socket taken_over(const asio::any_io_executor& io, int descriptor) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size);
  const asio::generic::stream_protocol protocol(name.ss_family, 0);
  return {io, protocol, descriptor};
}

// The certificate must be for the host. A name is also told to the server.
void name_server(SSL* ssl, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1) return;
  ERR_clear_error();
  // A dot at its end is for the look-up alone (RFC 6066, 3).
  std::string name = host;
  if (name.ends_with('.')) name.pop_back();
  // What SSL_set_tlsext_host_name() is, without its cast.
  const long told =
      SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  if (told != 1 || SSL_set1_host(ssl, name.c_str()) != 1)
    throw boost::system::system_error(asio::error::invalid_argument);
}

// Returns the bytes of a request without its body.
std::string head_of(const HttpRequest& request) {
  beast_http::request<beast_http::span_body<const char>> message(
      beast_http::string_to_verb(request.method), request.target, 11);
  message.set(beast_http::field::user_agent, "Carillon/" CARILLON_VERSION);
  for (const auto& [name, value] : request.headers) message.set(name, value);
  message.body() = {request.body.data(), request.body.size()};
  message.prepare_payload();
  beast_http::request_serializer<beast_http::span_body<const char>> serializer(message);
  serializer.split(true);
  std::string bytes;
  error_code error;
  while (!serializer.is_header_done()) {
    serializer.next(error, [&](error_code&, const auto& buffers) {
      bytes += beast::buffers_to_string(buffers);
      serializer.consume(beast::buffer_bytes(buffers));
    });
  }
  return bytes;
}

}  // namespace

ClientConnection::ClientConnection(const asio::any_io_executor& io, int descriptor)
    : socket_(taken_over(io, descriptor)) {}

void ClientConnection::begin_step() {
  if (patience_) {
    socket_.expires_after(*patience_);
  } else {
    socket_.expires_never();
  }
}

// Asio would make a socket that the commands of `carillon work` inherit.
asio::awaitable<void> ClientConnection::connect(const Endpoint& to) {
  const int descriptor = ::socket(to.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw boost::system::system_error(errno, boost::system::system_category());
  socket_.socket().assign(to.protocol(), descriptor);
  begin_step();
  co_await socket_.async_connect(to, use_awaitable);
  error_code ignored;  // a Unix socket has no such option
  socket_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

asio::awaitable<void> ClientConnection::start_tls(asio::ssl::context& context,
                                                  const std::string& host) {
  tls_.emplace(socket_, context);
  name_server(tls_->native_handle(), host);
  tls_->set_verify_mode(asio::ssl::verify_peer);
  begin_step();
  co_await tls_->async_handshake(asio::ssl::stream_base::client, use_awaitable);
}

std::string ClientConnection::wrong_certificate() {
  if (!tls_) return {};
  const long verified = SSL_get_verify_result(tls_->native_handle());
  return verified == X509_V_OK ? "" : X509_verify_cert_error_string(verified);
}

asio::awaitable<std::size_t> ClientConnection::read_some(asio::mutable_buffer into) {
  begin_step();
  co_return co_await receive(into);
}

asio::awaitable<std::size_t> ClientConnection::receive(asio::mutable_buffer into) {
  if (tls_) co_return co_await tls_->async_read_some(into, use_awaitable);
  co_return co_await socket_.async_read_some(into, use_awaitable);
}

asio::awaitable<void> ClientConnection::write(asio::const_buffer bytes) {
  while (bytes.size() > 0) {
    begin_step();
    if (tls_) {
      bytes += co_await tls_->async_write_some(bytes, use_awaitable);
    } else {
      bytes += co_await socket_.async_write_some(bytes, use_awaitable);
    }
  }
}

asio::awaitable<HttpAnswer> ClientConnection::ask(const HttpRequest& request,
                                                  const HttpLimits& limits) {
  answer_began_ = false;
  // One system call sends a small request. A large body is not copied.
  std::string head = head_of(request);
  std::string_view body = request.body;
  if (body.size() <= kSmallBody) head += std::exchange(body, {});
  co_await write(asio::buffer(head));
  co_await write(asio::buffer(body));
  std::optional<beast_http::response_parser<beast_http::buffer_body>> parser;
  for (int n = 0; n <= kMostInformational; ++n) {
    parser.emplace();
    parser->header_limit(static_cast<std::uint32_t>(limits.header));
    parser->body_limit(boost::none);
    begin_step();
    co_await parse_more(*parser, limits.header);
    const unsigned status = parser->get().result_int();
    if (status / 100 != 1 || status == 101) break;
  }
  HttpAnswer answer{.status = parser->get().result_int(),
                    .retry_after = std::string(parser->get()[beast_http::field::retry_after])};
  std::array<char, 4'096> piece{};
  std::size_t total = 0;
  while (!parser->is_done() && total < limits.body) {
    auto& into = parser->get().body();
    into.data = piece.data();
    into.size = std::min(piece.size(), limits.body - total);
    const std::size_t wanted = into.size;
    begin_step();
    co_await parse_more(*parser, limits.header);
    const std::size_t got = wanted - parser->get().body().size;
    answer.body.append(piece.data(), std::min(got, limits.kept - answer.body.size()));
    total += got;
  }
  if (!parser->is_done() || !parser->keep_alive() || buffer_.size() > 0) close();
  co_return answer;
}

// What Beast's async_read() does, which would be compiled once for each kind of stream.
asio::awaitable<void> ClientConnection::parse_more(beast_http::basic_parser<false>& parser,
                                                   std::size_t most) {
  error_code error = beast_http::error::need_more;
  if (buffer_.size() > 0) buffer_.consume(parser.put(buffer_.data(), error));
  while (error == beast_http::error::need_more) {
    // The parser takes the header, a line in front of a chunk, and the trailers as a whole.
    if (buffer_.size() > most) throw boost::system::system_error(beast_http::error::header_limit);
    const auto room = buffer_.prepare(beast::read_size(buffer_, 65'536));
    try {
      buffer_.commit(co_await receive(room));
    } catch (const boost::system::system_error& failure) {
      if (failure.code() != asio::error::eof) throw;
      if (!parser.got_some()) throw boost::system::system_error(beast_http::error::end_of_stream);
      error.clear();
      parser.put_eof(error);
      break;
    }
    answer_began_ = true;
    error.clear();
    buffer_.consume(parser.put(buffer_.data(), error));
  }
  // A piece of a body is full.
  if (error && error != beast_http::error::need_buffer) throw boost::system::system_error(error);
}

bool ClientConnection::is_quiet() {
  char byte = 0;
  return ::recv(socket_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 &&
         errno == EAGAIN;
}

void ClientConnection::close() {
  socket_.close();
}

bool wants_certificate(const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return false;
  const int why = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  return why == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED || why == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
         why == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE;
}

bool speaks_no_tls(const error_code& error) {
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_WRONG_VERSION_NUMBER;
}

}  // namespace carillon::server
