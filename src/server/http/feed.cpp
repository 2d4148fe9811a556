// The feed (server/metrics/feed.h) over HTTP: a stream of events, and what is kept (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <string>
#include <string_view>

#include "server/api/problem.h"
#include "server/http/routes.h"
#include "server/metrics/feed.h"

namespace carillon::server::http {

namespace {

// Returns the number that the query has for the name; without one, `most`. Throws Problem if it is
// not from 1 to `most`.
std::size_t number_asked(const RequestContext& x, std::string_view name, std::size_t most) {
  std::size_t number = most;
  for (const auto& [asked, value] : x.request.query) {
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || rest != end || number == 0 || number > most)
      throw wrong_query(name, fmt::format("\"{}\": not a number from 1 to {}", value, most));
  }
  return number;
}

}  // namespace

// A page that begins gets the newest event at once. One that was here before gets what it has
// missed, as far as it is kept.
void tell_events(RequestContext& x) {
  const Feed& feed = x.service().feed();
  std::string_view id = x.request.header("last-event-id");
  if (id.empty()) id = x.request.asked("last_event_id");
  const std::uint64_t newest = feed.newest();
  std::uint64_t after = newest == 0 ? 0 : newest - 1;
  if (!id.empty()) {
    const auto number = feed.number_of(id);
    if (!number) throw Problem(kBadRequest, fmt::format("\"{}\": not the id of an event", id));
    after = std::min(*number, newest);
  }
  if (feed.is_full()) {
    throw Problem(kNoMemory, fmt::format("{} clients listen to events, and no more may",
                                         Feed::kMostListeners));
  }
  x.tell_events(after);
}

void answer_history(RequestContext& x) {
  const std::size_t most = number_asked(x, "seconds", Feed::kMostSamples);
  const auto& samples = x.service().feed().samples();
  std::string body = R"({"samples":[)";
  for (std::size_t i = samples.size() - std::min(most, samples.size()); i < samples.size(); ++i) {
    if (body.back() != '[') body += ',';
    body += samples[i];
  }
  body += "]}";
  x.hold(body.size());
  x.answer({.body = std::move(body)});
}

// The newest first.
void answer_audit(RequestContext& x) {
  const std::size_t most = number_asked(x, "limit", Feed::kMostActions);
  const auto& actions = x.service().feed().actions();
  std::string body = R"({"actions":[)";
  for (std::size_t i = 0; i < std::min(most, actions.size()); ++i) {
    if (i > 0) body += ',';
    body += actions[actions.size() - 1 - i].json();
  }
  body += "]}";
  x.hold(body.size());
  x.answer({.body = std::move(body), .durable_at = x.engine().last_sequence()});
}

}  // namespace carillon::server::http
