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
// No call waits. If the socket takes or gives too little, the call must be repeated: kWantsInput,
// kWantsRoom.
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
  // The result of a call.
  enum class Result : std::uint8_t {
    kDone,
    kWantsInput,  // the same call again, when the socket has input
    kWantsRoom,   // the same call again, when the socket takes output
    kEnded,       // the client has closed its half, or the connection
    kPlainText,   // the client does not speak TLS; its bytes were not consumed
    kBroken,      // why() says why
  };
  struct Transfer {
    Result result;
    std::size_t bytes;  // 0 unless kDone
  };

  // The memory of one stream, in bytes; a little more than measured, while its buffers are used.
  static constexpr std::size_t kMemory = 48 << 10;

  // Takes over the SSL, which has a socket. The socket must outlive this.
  explicit TlsStream(SSL* ssl) : ssl_(ssl, &SSL_free) {}

  // Goes on with the handshake. It takes most of the time: some 0.5 ms, and more with an RSA key.
  Result shake_hands();
  // Returns true if the handshake is done.
  bool is_ready() const { return is_ready_; }

  // The following REQUIRE: is_ready().
  Transfer read(char* to, std::size_t size);
  // REQUIRES: `bytes` is not empty. After kWantsRoom, the next call must begin with the same bytes.
  Transfer write(std::string_view bytes);
  // Returns true if read() may have bytes although the socket has no bytes.
  bool has_pending() const { return SSL_has_pending(ssl_.get()) == 1; }

  // Tells the client that nothing follows, if the socket takes it now. Does so once.
  void say_goodbye();

  // Why a call has failed: "no shared cipher".
  const std::string& why() const { return why_; }

 private:
  bool is_plain_text();
  Result result_of(int returned);

  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  bool is_ready_ = false;
  bool has_heard_ = false;  // the client has sent something
  bool is_over_ = false;    // no goodbye, or not any more
  std::string why_;
};

}  // namespace carillon::server
