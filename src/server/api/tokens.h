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

// --- The client at the other end of a connection, and what its token allows. Each session has one
// Caller.
//
//   Caller caller(service.tokens());
//   if (!caller.show("carillon_k3Jx...")) ...      // there is no such token
//   caller.lacks({Needs::kPut, Reach::kTube});     // why it may not; an empty text if it may
//   caller.lacks_tube("mail");
//
// A server without tokens allows every client everything. Thread safety: none; a Caller belongs to
// its session.

// The scope that a command or request needs. kNothing: no token. kToken: a token with any scope.
enum class Needs : std::uint8_t { kNothing, kToken, kRead, kPut, kWork, kAdmin };

// Which tubes a command or request touches. The token must be good for them.
enum class Reach : std::uint8_t {
  kNoTube,
  kTube,       // the tube in the request
  kTubeInUse,  // the tube in use (beanstalk)
  kWatched,    // the tubes that the client watches (beanstalk)
  kJob,        // the tube of the job whose id is in the request
  kLease,      // the tube of the job that the lease holds (HTTP)
  kSchedule,   // the tube of the schedule in the request
  kChecked,    // the function checks the tubes: there are several, or they are in the body
  kAllTubes,
};

// What each row of the tables of verbs (beanstalk/session_verbs.cpp) and routes (http/routes.h)
// requires of the caller.
struct Rights {
  Needs needs;
  Reach reach;
};

class Caller {
 public:
  // If `tokens` is null, the server needs no tokens.
  explicit Caller(const Tokens* tokens) : tokens_(tokens) {}

  // Takes the token that the client has shown. Returns false if there is no such token: the caller
  // then has no token.
  bool show(std::string_view text);
  // Forgets the token that the client has shown before.
  void forget() { token_.reset(); }
  // Finds the token again after the server has reloaded its file. Returns false if it is gone, or
  // has other scopes or tubes: a request that still runs was allowed by the old ones.
  bool look_again();

  // Returns true also if the server has no tokens.
  bool is_known() const { return tokens_ == nullptr || token_ != nullptr; }
  bool may_use_all_tubes() const {
    return tokens_ == nullptr || (token_ && token_->may_use_all_tubes());
  }
  bool may_use(std::string_view tube) const {
    return tokens_ == nullptr || (token_ && token_->may_use(tube));
  }
  bool may(Needs needs) const;
  // Returns the client's name for the audit, with the name of its token: "ci at 127.0.0.1:4711".
  std::string shown_as(std::string_view name) const;

  // These return why the token does not allow it, for the client; an empty text if it does.
  std::string lacks(Rights rights) const;
  std::string lacks_tube(std::string_view tube) const;
  // The same for the tube of `what`, for instance "job 17". The client has not named that tube, so
  // the text does not name it either.
  std::string lacks_tube_of(std::string_view what, std::string_view tube) const;

  // Returns the key under which the engine remembers the client's key: each token has its own keys.
  // Without tokens this is the client's key. A key of up to queue::kMaxKey bytes gives a key of at
  // most as many bytes.
  std::string own_key(std::string_view key) const;

 private:
  const Tokens* tokens_;
  std::shared_ptr<const Token> token_;
};

// Returns the name of the scope; an empty text for kNothing and kToken.
std::string_view name_of(Needs needs);

}  // namespace carillon::server
