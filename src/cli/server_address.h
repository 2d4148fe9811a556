// The server that a command talks to, whether by TLS, and the token that it shows there. Its own
// address is that of the beanstalk protocol. Where it answers HTTP follows from that, or is named.
//
//   ServerAddress server;
//   add_server_option(command, server);  // --server, --http, --token-file, --tls and --tls-ca
//   Client client(Stream::connect(server));
//   Api api(server);                     // over HTTP
#pragma once

#include <optional>
#include <string>

#include "server/text/address.h"

namespace carillon::cli {

struct ServerAddress : server::Address {
  // The address for HTTP. None: beside the other address (http_beside() in server/text/address.h).
  std::optional<server::Address> http;
  bool has_http = true;  // else "none" was written

  // The file whose first line is the token. None: the variable CARILLON_TOKEN is it, if it is set.
  std::optional<std::string> token_file;

  // Use TLS. The variable CARILLON_TLS, if it is set and not 0, does the same.
  bool tls = false;
  // The file of the certificates that may sign the server's; implies TLS. None: the variable
  // CARILLON_TLS_CA names it, if it is set; else those that this system trusts may.
  std::optional<std::string> tls_ca;

  // Throws Failure if there is no such address.
  server::Address http_address() const;

  // Returns false for a Unix socket.
  bool uses_tls() const;
  std::optional<std::string> ca_file() const;

  // Returns the token to be shown, or none. Throws Failure if the file cannot be read, or has no
  // token.
  std::optional<std::string> token() const;
};

}  // namespace carillon::cli
