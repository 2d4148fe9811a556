// One client's TLS, on its non-blocking socket (OpenSSL). A Connection has one if its port speaks
// TLS; TlsContext makes them.
//
//   const auto accepted = context.accept(fd);
//   TlsStream& tls = *accepted;
//   while (tls.shake_hands() == TlsStream::Result::kWantsInput) wait_for_input(fd);
//   const auto [result, bytes] = tls.read(buffer, size);
//   tls.write("INSERTED 1\r\n");
//   tls.say_goodbye();
//
// No call waits. What the socket does not take or give is asked for again: kWantsInput, kWantsRoom.
//
// Thread safety: none.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace carillon::server {

class TlsStream {
 public:
  // What has come of a call.
  enum class Result : std::uint8_t {
    kDone,
    kWantsInput,  // the same call again, when the socket has input
    kWantsRoom,   // the same call again, when the socket takes output
    kEnded,       // the client has closed its half, or the connection
    kPlainText,   // the client does not speak TLS; nothing was read of what it has sent
    kBroken,      // why() tells
  };
  struct Transfer {
    Result result;
    std::size_t bytes;  // 0 unless kDone
  };

  // What one takes of memory, in bytes; a little more than measured, while its buffers are used.
  static constexpr std::size_t kMemory = 48 << 10;

  // Takes over the SSL, which has a socket. The socket must outlive this.
  explicit TlsStream(SSL* ssl) : ssl_(ssl, &SSL_free) {}

  // Goes on with the handshake. This is where the time goes: some 0.5 ms, and more with a key of
  // RSA.
  Result shake_hands();
  // The handshake is done.
  bool is_ready() const { return is_ready_; }

  // REQUIRES of the next ones: is_ready().
  Transfer read(char* to, std::size_t size);
  // REQUIRES: bytes are there. After kWantsRoom, the same bytes come first in the next call.
  Transfer write(std::string_view bytes);
  // Returns true if read() may have bytes although the socket has none.
  bool has_pending() const { return SSL_has_pending(ssl_.get()) == 1; }

  // Tells the client that nothing follows, as far as the socket takes it now. Once.
  void say_goodbye();

  // Why a call has failed: "no shared cipher".
  const std::string& why() const { return why_; }

 private:
  bool is_plain_text();
  Result result_of(int returned);

  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  bool is_ready_ = false;
  bool has_heard_ = false;  // the client has sent something
  bool is_over_ = false;    // no goodbye (any more)
  std::string why_;
};

}  // namespace carillon::server
