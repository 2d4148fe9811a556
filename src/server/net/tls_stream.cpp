// TlsStream (tls_stream.h).
#include "server/net/tls_stream.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include "carillon/require.h"

namespace carillon::server {
namespace {

// The first byte of a TLS record that has a part of a handshake (RFC 8446, section 5.1).
constexpr char kHandshake = 22;

}  // namespace

// Checked before OpenSSL reads: OpenSSL would report plain text as a wrong version, and would have
// consumed it.
bool TlsStream::is_plain_text() {
  char first = 0;
  if (has_heard_ || ::recv(SSL_get_fd(ssl_.get()), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
    return false;
  has_heard_ = true;
  return first != kHandshake;
}

TlsStream::Result TlsStream::shake_hands() {
  if (is_plain_text()) return Result::kPlainText;
  ERR_clear_error();
  const int returned = SSL_accept(ssl_.get());
  is_ready_ = returned == 1;
  return result_of(returned);
}

TlsStream::Transfer TlsStream::read(char* to, std::size_t size) {
  CARILLON_REQUIRE(is_ready_);
  ERR_clear_error();
  std::size_t bytes = 0;
  const int returned = SSL_read_ex(ssl_.get(), to, size, &bytes);
  return {.result = result_of(returned), .bytes = bytes};
}

TlsStream::Transfer TlsStream::write(std::string_view bytes) {
  CARILLON_REQUIRE(is_ready_ && !bytes.empty(), is_ready_, bytes.size());
  ERR_clear_error();
  std::size_t written = 0;
  const int returned = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
  return {.result = result_of(returned), .bytes = written};
}

TlsStream::Result TlsStream::result_of(int returned) {
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_NONE:
      return Result::kDone;
    case SSL_ERROR_WANT_READ:
      return Result::kWantsInput;
    case SSL_ERROR_WANT_WRITE:
      return Result::kWantsRoom;
    case SSL_ERROR_ZERO_RETURN:
      return Result::kEnded;
    case SSL_ERROR_SYSCALL:  // the connection is lost
      is_over_ = true;
      return Result::kEnded;
    default:
      break;
  }
  // Saying goodbye after this would itself be an error.
  is_over_ = true;
  const unsigned long error = ERR_peek_last_error();
  // Many clients close the connection without a goodbye. A command or a body that this cuts off is
  // not carried out in any case.
  const bool is_cut = ERR_GET_LIB(error) == ERR_LIB_SSL &&
                      ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (is_cut) return Result::kEnded;
  const char* const reason = ERR_reason_error_string(error);
  why_ = reason != nullptr ? reason : "unknown error";
  ERR_clear_error();
  return Result::kBroken;
}

void TlsStream::say_goodbye() {
  if (is_over_ || !is_ready_) return;
  is_over_ = true;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

}  // namespace carillon::server
