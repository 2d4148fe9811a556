// EventLoop: the turns of clients that listen to the feed (event_loop.h, feed.h).
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

#include "server/event_loop.h"
#include "server/net/clock.h"

namespace carillon::server {

// At most Feed::kMostListeners get in line.
void EventLoop::tell_listeners() {
  Feed& feed = service_.feed();
  if (!feed.work(service_.now())) return;
  std::vector<std::shared_ptr<Connection>> behind;
  for (const queue::ClientId client : feed.listeners()) {
    const auto found = connections_.find(client);
    if (found == connections_.end()) continue;
    if (found->second->session().has_fallen_behind()) {
      behind.push_back(found->second);
    } else {
      line_.join(*found->second);
    }
  }
  for (const auto& connection : behind) {
    ++service_.counters().closed_stalled;
    if (const auto held_back = stalled_.pass(read_mono())) {
      spdlog::warn(
          "closed the connection of {}, which read its events too slowly ({} more such "
          "since the last line)",
          connection->peer(), *held_back);
    }
    connection->give_up();
  }
}

}  // namespace carillon::server
