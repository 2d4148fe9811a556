// Connection: what is between the socket and the buffers if the port speaks TLS (connection.h).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <string_view>
#include <utility>

#include "server/net/connection.h"

namespace carillon::server {

namespace asio = boost::asio;
using Result = TlsStream::Result;

namespace {

// The handshake ends with what the client has sent, and the kernel would acknowledge that 40 ms
// later. A client that keeps to Nagle's algorithm sends its first command no sooner.
void acknowledge_now(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

// Returns true if the client begins with a plain request for /healthz, without taking it.
bool asks_for_health(int fd) {
  constexpr std::string_view kRequest = "GET /healthz ";
  std::array<char, kRequest.size()> begin{};
  return ::recv(fd, begin.data(), begin.size(), MSG_PEEK | MSG_DONTWAIT) == ssize_t{begin.size()} &&
         std::string_view(begin.data(), begin.size()) == kRequest;
}

}  // namespace

void Connection::await_socket(Socket::wait_type what) {
  reading_ = true;
  const auto go_on = [self = shared_from_this()](const boost::system::error_code& error) {
    self->on_socket_ready(error);
  };
  // The socket may have no more bytes, while TLS has some.
  if (tls_->is_ready() && tls_->has_pending())
    return asio::post(socket_.get_executor(), [go_on] { go_on({}); });
  socket_.async_wait(what, go_on);
}

void Connection::on_socket_ready(const boost::system::error_code& error) {
  reading_ = false;
  if (closed_) return;
  if (lingering()) return read();
  if (error) return abort();
  tls_->is_ready() ? read_decrypted() : owner_.shakes_hands(*this);
}

void Connection::shake_hands() {
  if (closed_ || lingering()) return;
  switch (tls_->shake_hands()) {
    case Result::kDone:
      acknowledge_now(socket_.native_handle());
      owner_.active(*this);
      return read();
    case Result::kWantsInput:
      return await_socket(Socket::wait_read);
    case Result::kWantsRoom:
      return await_socket(Socket::wait_write);
    case Result::kEnded:
      return abort();
    case Result::kPlainText:
      if (!is_health_check()) turn_away(RejectReason::kPlainText);
      session_->replies().add(0, session_->plain_text_reply());
      tls_.reset();
      session_->close();
      return owner_.has_replies(*this);
    case Result::kBroken:
      turn_away(RejectReason::kNoTls);
      return finish();
  }
}

// Reads until the buffer is full, or no more bytes are there.
void Connection::read_decrypted() {
  make_room_to_read();
  boost::system::error_code end;
  std::size_t bytes = 0;
  TlsStream::Transfer last{.result = Result::kDone, .bytes = 0};
  while (last.result == Result::kDone && end_ + bytes < input_.size()) {
    last = tls_->read(input_.data() + end_ + bytes, input_.size() - end_ - bytes);
    bytes += last.bytes;
  }
  if (last.result == Result::kEnded) end = asio::error::eof;
  if (last.result == Result::kBroken) end = asio::error::connection_reset;
  if (last.result == Result::kWantsRoom && bytes == 0) return await_socket(Socket::wait_write);
  if (last.result == Result::kWantsInput && bytes == 0)
    return read();  // only a part of a record has come
  on_read(end, bytes);
}

std::size_t Connection::write_some(std::string_view bytes, boost::system::error_code& error) {
  if (!tls_) return socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
  const auto [result, written] = tls_->write(bytes);
  if (result == Result::kWantsRoom || result == Result::kWantsInput) {
    error = asio::error::would_block;
  } else if (result != Result::kDone) {
    error = asio::error::connection_reset;
  }
  return written;
}

// The health check of the image cannot know whether the port speaks TLS, and any answer shows it
// that the server lives. It comes every 10 seconds, so it is neither logged nor counted.
bool Connection::is_health_check() {
  return peer().starts_with("127.0.0.1:") && asks_for_health(socket_.native_handle());
}

void Connection::turn_away(RejectReason reason) {
  ++service_.counters().closed_foreign;
  owner_.turned_away(*this, reason);
}

}  // namespace carillon::server
