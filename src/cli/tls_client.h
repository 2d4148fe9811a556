// TLS at the client's end, as a state machine without a socket (OpenSSL): bytes of the server go
// in, bytes for it come out. Checks the server's certificate, and that it is of this server.
//
//   TlsClient tls("jobs.example.org", ca_file);
//   while (!tls.shake_hands()) { send(tls.take_output()); tls.add_input(receive()); }
//   tls.encrypt("stats\r\n");
//   send(tls.take_output());
//   tls.add_input(receive());
//   tls.decrypt(text);
//
// Thread safety: none.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace carillon::cli {

class TlsClient {
 public:
  // `host` is a name or an address: the certificate must be for it, and signed by one of those in
  // `ca_file`, in PEM; without it, by one that this system trusts. To a server that asks for the
  // client's certificate it shows the one in the file that the variable CARILLON_TLS_CERT names,
  // whose key is in that of CARILLON_TLS_KEY. Throws Failure.
  TlsClient(const std::string& host, const std::optional<std::string>& ca_file);

  // Goes on with the handshake. Returns true when it is done; what take_output() returns is to be
  // sent in any case. Throws Failure if the certificate is not good, or the server speaks no TLS.
  bool shake_hands();

  // REQUIRES of the next two: the handshake is done.
  void encrypt(std::string_view bytes);
  // Appends what has come and was not read yet. Returns false if the server has ended. Throws
  // Failure if somebody has changed what it sent.
  bool decrypt(std::string& to);

  void add_input(std::string_view bytes);
  // Returns what is to be sent, and forgets it.
  std::string take_output();

 private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  BIO* input_ = nullptr;   // of ssl_
  BIO* output_ = nullptr;  // of ssl_
};

}  // namespace carillon::cli
