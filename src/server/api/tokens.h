// Tokens: clients prove with them who they are, and each allows some operations.
//
//   Tokens tokens("/etc/carillon/tokens");               // StartError if others can read the file
//   const auto token = tokens.find("carillon_k3Jx...");  // null: there is no such token
//   token->has(Scope::kPut) && token->may_use("mail.welcome");
//
// The file has a line for each token:
//
//   # name  SHA-256 of the token         scopes    tubes
//   ci      sha256:9f86d081884c7d65...   put,work  mail.*,images
//
// `tubes` are names or patterns, in which * matches any text; without it the token is good for all
// tubes. Empty lines and lines that begin with # are ignored. `carillon token new` makes a token
// and prints its line.
//
// Why a fast hash is enough. A slow hash protects passwords, because people choose passwords that
// can be guessed. A token is 32 random bytes: to find it from its SHA-256, an attacker would have
// to try 2^255 tokens. So a request costs one SHA-256, and a stolen file opens no server.
//
// Comparing. find() hashes the client's token and compares the hash with all others, each in
// constant time. So its time reveals nothing about the tokens.
//
// Thread safety: none; they belong to the thread of the event loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::server {

// The rights of a token. kAdmin includes all others.
enum class Scope : std::uint8_t { kRead, kPut, kWork, kAdmin };

// Returns "read", "put", "work" or "admin".
std::string_view name_of(Scope scope);
// Throws std::invalid_argument if the text is not a list of scopes like "put,work".
std::vector<Scope> parse_scopes(std::string_view text);
// Throws std::invalid_argument if the text is not a list of names and patterns like
// "mail.*,images".
std::vector<std::string> parse_tube_patterns(std::string_view text);
// Throws std::invalid_argument if the text is not a name for a token: 1 to 64 letters, digits, -_.
std::string parse_token_name(std::string_view text);

// A SHA-256, in bytes.
using TokenHash = std::array<unsigned char, 32>;

struct Token {
  std::string name;
  TokenHash hash{};
  std::vector<Scope> scopes;
  // Empty: all tubes.
  std::vector<std::string> tubes;

  bool has(Scope scope) const;
  bool may_use(std::string_view tube) const;
  bool may_use_all_tubes() const { return tubes.empty(); }
};

// Returns a new token: "carillon_" and 32 random bytes in base64url. Throws std::runtime_error if
// the system gives no random bytes.
std::string make_token();
// Returns the SHA-256 of the text in 64 hexadecimal digits.
std::string sha256_digits(std::string_view text);
// Returns the line of the file, without a newline, for the token with this text.
std::string token_line(const Token& token, std::string_view text);

class Tokens {
 public:
  // The longest file, in bytes, and the most tokens in it.
  static constexpr std::size_t kLongestFile = 1 << 20;
  static constexpr std::size_t kMost = 1'000;

  // Throws StartError if the file cannot be read or is wrong, if users other than its owner and its
  // group may read it, or if users other than its owner may change it.
  explicit Tokens(std::string path);

  // Reads the file again. Throws StartError as the constructor does; the old tokens then stay.
  void reload();

  // These return null if there is no such token.
  std::shared_ptr<const Token> find(std::string_view text) const;
  std::shared_ptr<const Token> find(const TokenHash& hash) const;

  std::size_t size() const { return tokens_.size(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::shared_ptr<const Token>> tokens_;
};

}  // namespace carillon::server
