// The client at the other end of a connection, and what its token allows. Each session has one
// Caller.
//
//   Caller caller(service.tokens());
//   if (!caller.show("carillon_k3Jx...")) ...      // there is no such token
//   caller.lacks({Needs::kPut, Reach::kTube});     // why it may not; an empty text if it may
//   caller.lacks_tube("mail");
//
// A server without tokens allows every client everything.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/api/tokens.h"

namespace carillon::server {

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
