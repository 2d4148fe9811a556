// The server's certificate and key, and the TLS connections made with them: TLS 1.3 or 1.2, by
// OpenSSL.
//
//   TlsContext tls({.certificate = "/etc/carillon/tls.crt", .key = "/etc/carillon/tls.key"});
//   const std::unique_ptr<TlsStream> stream = tls.accept(fd);
//   tls.reload();             // the files were changed: for the connections that come from now on
//
// What is allowed: the ciphers of TLS 1.3; of TLS 1.2 those with forward secrecy and authenticated
// encryption. There is no renegotiation, no compression and no resumption of sessions: so no key
// lives longer than a connection, and a client that has left costs no memory.
//
// Thread safety: none; it belongs to the thread of the event loop.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "server/net/tls_stream.h"

namespace carillon::server {

// Names of files in PEM.
struct TlsFiles {
  std::string certificate;  // the server's own one first, then those that lead to a known one
  std::string key;          // of the first certificate, without a password
  // Clients must show a certificate that these have signed. None: they need no certificate.
  std::optional<std::string> client_ca = std::nullopt;
};

class TlsContext {
 public:
  // Throws StartError, which says what file is wrong, and why.
  explicit TlsContext(TlsFiles files);

  // Reads the files again. Throws StartError like the constructor, and then keeps the old files'
  // content.
  void reload();

  // Returns the server's end of TLS on a socket; null if memory is short.
  std::unique_ptr<TlsStream> accept(int fd) const;

  const TlsFiles& files() const { return files_; }
  // When the server's certificate ends, and when it becomes valid.
  std::chrono::system_clock::time_point not_after() const;
  std::chrono::system_clock::time_point not_before() const;

 private:
  using Context = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

  static Context load(const TlsFiles& files);

  TlsFiles files_;
  Context context_;
};

// Logs that the certificate is used, and until when it is valid. Warns if it is not valid now, or
// if other users may read its key.
void log_certificate(const TlsContext& tls);

// Returns why users other than the owner and the group may use the key; empty if they may not.
std::string key_exposure(const std::string& path);

}  // namespace carillon::server
