// http::Session: checks where a request comes from, and what its client may do (session.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/preconditions.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/session.h"
#include "server/text/address.h"

namespace carillon::server::http {

namespace {

// The port may be missing or empty (RFC 9110, 7.2).
std::optional<Authority> read_host(std::string_view host) {
  try {
    const Authority parts = split_authority(host);
    const bool has_port = parts.port && !parts.port->empty();
    if (!has_port || read_port(*parts.port)) return parts;
  } catch (const std::invalid_argument&) {
  }
  return std::nullopt;
}

constexpr std::string_view kChallenge = "Bearer realm=\"carillon\"";

Problem wrong_token(std::string why) {
  return Problem(kNoToken, std::move(why))
      .with("WWW-Authenticate", std::string(kChallenge) + ", error=\"invalid_token\"");
}

bool is_origin_of(std::string_view origin, std::string_view host) {
  const auto url = split_url(origin);
  return url && url->authority == host && url->resource.empty();
}

// The body must not be encoded: a worker would get it as it is, and not know how to decode it.
void check_encoding(const Request& request) {
  const std::string_view encoding = request.header("content-encoding");
  if (encoding.empty() || boost::beast::iequals(encoding, "identity")) return;
  throw Problem(kEncoded,
                fmt::format("Content-Encoding: {}: send the body as it is, without one", encoding))
      .with("Accept-Encoding", "identity");
}

// Another content type means another kind of patch, such as a list of steps (RFC 5789, 2.2). curl
// sends its type by default: it does not describe the body.
void check_patch_type(const Request& request) {
  constexpr std::array<std::string_view, 4> kTypes = {"", "application/merge-patch+json", kJsonType,
                                                      kFormType};
  const auto is_it = [&](std::string_view known) { return request.is_of_type(known); };
  if (request.method != "PATCH" || std::any_of(kTypes.begin(), kTypes.end(), is_it)) return;
  throw Problem(kWrongType,
                fmt::format("Content-Type: {}: a PATCH takes {}", request.media_type(), kTypes[1]))
      .with("Accept-Patch", std::string(kTypes[1]));
}

// Returns true if somebody has followed a link: the answer then becomes a page, not a part of
// another page (Fetch Metadata, https://www.w3.org/TR/fetch-metadata/).
bool follows_link(const Request& request) {
  return request.method == "GET" && request.header("sec-fetch-mode") == "navigate" &&
         request.header("sec-fetch-dest") == "document" && request.header("origin").empty();
}

}  // namespace

Match Session::check(Request& request) {
  path_ = request.path;
  head_only_ = request.method == "HEAD";
  if (head_only_) request.method = "GET";
  check_host(request);
  if (!follows_link(request)) check_site(request);
  Match match = find_route(request.method, request.path);
  if (match.route->rights.needs != Needs::kNothing) check_site(request);
  check_token(request, match);
  check_encoding(request);
  check_patch_type(request);
  refuse_preconditions(request, match.route->operation);
  return match;
}

void Session::check_host(const Request& request) const {
  const std::string_view host = request.header("host");
  if (host.empty()) return;
  const auto read = read_host(host);
  const std::string_view name = read ? read->host : host;
  const auto is_name = [name](std::string_view own) { return boost::beast::iequals(own, name); };
  const bool is_known = read && (read->is_address || is_name("localhost") ||
                                 std::any_of(names_.begin(), names_.end(), is_name));
  if (!is_known) {
    throw Problem(kWrongHost, fmt::format("the server is not called \"{}\"; if it is, see carillon "
                                          "serve --http-name",
                                          name));
  }
}

void Session::check_site(const Request& request) {
  const std::string_view site = request.header("sec-fetch-site");
  const std::string_view origin = request.header("origin");
  const bool is_own_site = site.empty() || site == "same-origin" || site == "none";
  const bool is_own_origin = origin.empty() || is_origin_of(origin, request.header("host"));
  if (!is_own_site || !is_own_origin) {
    throw Problem(kForeignPage, fmt::format("a page of {} has sent the request",
                                            origin.empty() ? "another site" : origin));
  }
}

void Session::check_token(const Request& request, const Match& match) {
  const Rights rights = match.route->rights;
  caller_.forget();
  if (service_.tokens() == nullptr || rights.needs == Needs::kNothing) return;
  const std::string_view header = request.header("authorization");
  const std::size_t space = header.find(' ');
  const bool is_bearer = boost::beast::iequals(header.substr(0, space), "bearer");
  const std::string_view shown =
      is_bearer && space != std::string_view::npos ? header.substr(space + 1) : std::string_view();
  if (shown.empty()) {
    throw Problem(kNoToken, "write a header \"Authorization: Bearer TOKEN\"")
        .with("WWW-Authenticate", std::string(kChallenge));
  }
  if (!caller_.show(shown)) {
    keep_alive_ = false;
    ++service_.counters().wrong_tokens;
    rejection_ = RejectReason::kWrongToken;
    throw wrong_token("the server knows no such token");
  }
  if (std::string why = caller_.lacks(rights); !why.empty()) {
    throw Problem(kForbidden, std::move(why))
        .with("WWW-Authenticate", fmt::format("{}, error=\"insufficient_scope\", scope=\"{}\"",
                                              kChallenge, name_of(rights.needs)));
  }
}

// Checks the tube of what the path names. If that does not exist, the route's function says so.
void Session::check_tube(const Match& match) {
  if (caller_.may_use_all_tubes()) return;
  queue::Engine& engine = service_.engine();
  const auto require = [&](std::string why) {
    if (!why.empty()) throw Problem(kForbidden, std::move(why));
  };
  const auto require_of_job = [&](queue::JobId id) {
    if (const auto stats = engine.job_stats(service_.now(), id))
      require(caller_.lacks_tube_of(fmt::format("job {}", id), stats->tube));
  };
  switch (match.route->rights.reach) {
    case Reach::kTube:
      return require(caller_.lacks_tube(match.names.front()));
    case Reach::kJob:
      return require_of_job(job_id_of(match.names.front()));
    case Reach::kLease:
      if (const auto lease = service_.leases().find(match.names.front()))
        require_of_job(lease->job);
      return;
    case Reach::kSchedule:
      if (const auto found = engine.schedule(service_.now(), match.names.front(), 0))
        require(caller_.lacks_tube_of("the schedule " + match.names.front(),
                                      found->record.schedule.tube));
      return;
    default:
      return;
  }
}

bool Session::may_go_on() {
  is_revoked_ = !caller_.look_again();
  return !is_revoked_;
}

namespace {

// A client that is told when to retry sends the request again. So it is not told if parts of the
// request may have been carried out: they stay so, and a kick would kick twice as many.
Problem stopped(bool may_have_changed) {
  if (!may_have_changed)
    return Problem(kDraining, "the server stops, or the client has left").with("Retry-After", "1");
  return Problem(kDraining, "the server stops; a part of the request may have been carried out");
}

}  // namespace

// A client that has left does not get this.
void Session::tell_of_the_end() {
  const bool may_have_changed = exchange_ && exchange_->operation != nullptr &&
                                exchange_->operation->appends == Appends::kYes &&
                                exchange_->awaits() != RequestContext::Awaits::kDelivery;
  const Problem problem =
      is_revoked_ ? wrong_token("the token was taken away, or changed, while the request went on")
                  : stopped(may_have_changed);
  const Reply reply{.status = problem.kind().status,
                    .type = kProblemJson,
                    .body = problem.json(path_),
                    .headers = problem.headers(),
                    .durable_at = service_.engine().last_sequence()};
  replies_.add(reply.durable_at, head_of(reply, false, service_.now().utc_ns),
               std::string_view(reply.body));
}

}  // namespace carillon::server::http
