// Caller (caller.h).
#include "server/api/caller.h"

#include <fmt/format.h>

#include <utility>

#include "carillon/queue/job.h"
#include "carillon/require.h"

namespace carillon::server {
namespace {

// REQUIRES: `needs` is a scope.
Scope scope_of(Needs needs) {
  CARILLON_REQUIRE(needs != Needs::kNothing && needs != Needs::kToken, needs);
  switch (needs) {
    case Needs::kRead:
      return Scope::kRead;
    case Needs::kPut:
      return Scope::kPut;
    case Needs::kWork:
      return Scope::kWork;
    default:
      return Scope::kAdmin;
  }
}

}  // namespace

std::string_view name_of(Needs needs) {
  const bool is_scope = needs != Needs::kNothing && needs != Needs::kToken;
  return is_scope ? name_of(scope_of(needs)) : std::string_view();
}

bool Caller::show(std::string_view text) {
  if (tokens_ == nullptr) return true;
  token_ = tokens_->find(text);
  return token_ != nullptr;
}

bool Caller::look_again() {
  if (!token_) return true;
  const auto before = std::exchange(token_, tokens_->find(token_->hash));
  return token_ && token_->scopes == before->scopes && token_->tubes == before->tubes;
}

std::string Caller::shown_as(std::string_view name) const {
  return token_ ? fmt::format("{} at {}", token_->name, name) : std::string(name);
}

bool Caller::may(Needs needs) const {
  if (tokens_ == nullptr || needs == Needs::kNothing) return true;
  return token_ && (needs == Needs::kToken || token_->has(scope_of(needs)));
}

std::string Caller::lacks(Rights rights) const {
  if (tokens_ == nullptr || rights.needs == Needs::kNothing) return {};
  if (!token_) return "a token is needed";
  if (!may(rights.needs)) {
    return fmt::format("the token \"{}\" lacks the scope {}", token_->name, name_of(rights.needs));
  }
  if (rights.reach == Reach::kAllTubes && !token_->may_use_all_tubes())
    return fmt::format("the token \"{}\" is not for all tubes", token_->name);
  return {};
}

std::string Caller::lacks_tube(std::string_view tube) const {
  if (may_use(tube)) return {};
  if (!token_) return "a token is needed";
  return fmt::format("the token \"{}\" is not for the tube {}", token_->name, tube);
}

std::string Caller::lacks_tube_of(std::string_view what, std::string_view tube) const {
  if (may_use(tube)) return {};
  if (!token_) return "a token is needed";
  return fmt::format("the token \"{}\" is not for the tube of {}", token_->name, what);
}

// Names and keys have no spaces. So this key differs from every key that came without a token.
std::string Caller::own_key(std::string_view key) const {
  if (!token_) return std::string(key);
  std::string own = fmt::format("{} {}", token_->name, key);
  if (own.size() > queue::kMaxKey) own = fmt::format("{} {}", token_->name, sha256_digits(key));
  return own;
}

}  // namespace carillon::server
