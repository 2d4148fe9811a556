// The feed (server/api/feed.h) over HTTP: a stream of events (routes.h). It is no row of the API: a
// row answers once, and with JSON.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "server/api/feed.h"
#include "server/api/problem.h"
#include "server/http/routes.h"

namespace carillon::server::http {

// A new page gets the newest event at once. A page that connects again gets the events that it has
// missed, as far as the server keeps them.
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

}  // namespace carillon::server::http
