// The server that a command talks to, and the token that it shows there.
//
//   Endpoint server;
//   add_server_option(command, server);      // --server and --token-file
//   Client client(Stream::connect(server));
#pragma once

#include <optional>
#include <string>

#include "server/address.h"

namespace carillon::cli {

struct Endpoint : server::Address {
  // The file whose first line is the token. None: the variable CARILLON_TOKEN is it, if it is set.
  std::optional<std::string> token_file;

  // Returns the token to be shown, or none. Throws Failure if the file cannot be read, or has no
  // token.
  std::optional<std::string> token() const;
};

}  // namespace carillon::cli
