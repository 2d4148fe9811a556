// TokenFile: the file of a server's tokens, for a test. Each token's text is its name.
//
//   const TokenFile file({{"reader", "read"}, {"mailer", "put,work", "mail,mail.*"}});
//   Tokens tokens(file.path);
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "server/api/tokens.h"

namespace carillon::server {

struct TokenFile {
  struct Line {
    std::string name, scopes, tubes = "";  // tubes: all, if it is empty
  };

  explicit TokenFile(const std::vector<Line>& lines) {
    write(lines);
    ::chmod(path.c_str(), 0600);
  }
  ~TokenFile() { ::unlink(path.c_str()); }
  TokenFile(const TokenFile&) = delete;

  void write(const std::vector<Line>& lines) const {
    std::ofstream file(path);
    for (const auto& [name, scopes, tubes] : lines) {
      Token token{.name = name, .scopes = parse_scopes(scopes), .tubes = {}};
      if (!tubes.empty()) token.tubes = parse_tube_patterns(tubes);
      file << token_line(token, name) << "\n";
    }
  }

  const std::string path = testing::TempDir() + "tokens." + std::to_string(::getpid());
};

}  // namespace carillon::server
