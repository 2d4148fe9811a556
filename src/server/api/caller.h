// Who is at the other end of a connection, and what that client may do. Each session has one.
//
//   Caller caller(service.tokens());
//   if (!caller.show("carillon_k3Jx...")) ...      // there is no such token
//   caller.lacks({Needs::kPut, Reach::kTube});     // why it may not; an empty text: it may
//   caller.lacks_tube("mail");
//
// A server without tokens asks nobody for one: its callers may do all.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/api/tokens.h"

namespace carillon::server {

// What a command or request needs of the token. kNothing: not even one. kToken: any.
enum class Needs : std::uint8_t { kNothing, kToken, kRead, kPut, kWork, kAdmin };

// Which tubes it touches, and so which the token must be good for.
enum class Reach : std::uint8_t {
  kNoTube,
  kTube,       // the one that it names
  kTubeInUse,  // the one in use (beanstalk)
  kWatched,    // those that the client watches (beanstalk)
  kJob,        // that of the job which it names by its id
  kLease,      // that of the job of a lease (HTTP)
  kSchedule,   // that of the schedule which it names
  kChecked,    // its function looks: each of several tubes, or one that stands in the body
  kAllTubes,
};

// What the tables of verbs (beanstalk/session_verbs.cpp) and routes (http/routes.h) declare.
struct Rights {
  Needs needs;
  Reach reach;
};

class Caller {
 public:
  // Null: no token is asked for.
  explicit Caller(const Tokens* tokens) : tokens_(tokens) {}

  // Takes the token that the client has shown. Returns false if there is no such token; the caller
  // has none then.
  bool show(std::string_view text);
  // The client shows no token (any more).
  void forget() { token_.reset(); }
  // Looks for the token again, after the tokens were reloaded. Returns false if it has gone, or has
  // other scopes or tubes: what goes on was allowed by those before.
  bool look_again();

  // Without tokens everybody is known.
  bool is_known() const { return tokens_ == nullptr || token_ != nullptr; }
  bool may_use_all_tubes() const {
    return tokens_ == nullptr || (token_ && token_->may_use_all_tubes());
  }
  bool may_use(std::string_view tube) const {
    return tokens_ == nullptr || (token_ && token_->may_use(tube));
  }
  bool may(Needs needs) const;
  // Returns how the audit calls the client of this name: with its token's, "ci at 127.0.0.1:4711".
  std::string shown_as(std::string_view name) const;

  // Say what is missing, for the client; an empty text if nothing is.
  std::string lacks(Rights rights) const;
  std::string lacks_tube(std::string_view tube) const;
  // The same for the tube of `what`, for instance "job 17", when the client has not named the tube
  // itself: so the text does not name it either.
  std::string lacks_tube_of(std::string_view what, std::string_view tube) const;

  // Returns the key under which the engine keeps what the client wants to happen once only: each
  // token has keys of its own. Without tokens that is the client's key. It has at most
  // queue::kMaxKey bytes if the client's key has no more.
  std::string own_key(std::string_view key) const;

 private:
  const Tokens* tokens_;
  std::shared_ptr<const Token> token_;
};

// The scope's name; an empty text for kNothing and kToken.
std::string_view name_of(Needs needs);

}  // namespace carillon::server
