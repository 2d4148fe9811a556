// ServerAddress: where its settings come from (server_address.h).
#include "cli/server_address.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "cli/exit_status.h"
#include "server/api/names.h"

namespace carillon::cli {

server::Address ServerAddress::http_address() const try {
  if (!has_http) throw Failure("the command talks HTTP to the server, which --http none forbids");
  return http ? *http : server::http_beside(*this);
} catch (const std::invalid_argument& error) {
  throw Failure(error.what());
}

std::optional<std::string> ServerAddress::ca_file() const {
  if (tls_ca) return tls_ca;
  const char* const variable = std::getenv("CARILLON_TLS_CA");
  if (variable == nullptr || *variable == '\0') return std::nullopt;
  return variable;
}

bool ServerAddress::uses_tls() const {
  if (is_unix()) return false;
  const char* const variable = std::getenv("CARILLON_TLS");
  const std::string_view text = variable != nullptr ? variable : "";
  return tls || ca_file() || (!text.empty() && text != "0");
}

std::optional<std::string> ServerAddress::token() const {
  std::string token;
  std::string source = "the variable CARILLON_TOKEN";
  if (token_file) {
    source = *token_file;
    std::ifstream file(*token_file);
    if (!file) throw Failure(fmt::format("cannot read {}: {}", *token_file, error_text(errno)));
    std::getline(file, token);
    if (token.ends_with('\r')) token.pop_back();
  } else if (const char* variable = std::getenv("CARILLON_TOKEN")) {
    token = variable;
    if (token.empty()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  // The token is not shown: an error may end in a log.
  if (!server::is_key(token))
    throw Failure(
        fmt::format("{} has no token: one word, as carillon token new prints it", source));
  return token;
}

}  // namespace carillon::cli
