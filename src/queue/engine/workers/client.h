// A client of the engine: its tube in use, the tubes that it watches, the jobs that it holds, and
// whether it waits for a job.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/engine.h"
#include "queue/engine/jobs/loaded_job.h"

namespace carillon::queue {

// Says that a client watches a tube. While the client waits in a reserve, each of its Watches is
// linked into the line of waiting clients of its tube. The Watches of a client with many of them
// may stand there a little longer (Clients::leave_lines).
struct Watch {
  Watch(Client& by, Tube& of) : client(&by), tube(&of) {}

  Client* client;
  Tube* tube;
  std::size_t position = 0;  // in Client::watches
  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> tube_hook;
  boost::intrusive::list_member_hook<> waiting_hook;
};

// A list of all tubes that a client reads in steps (tubes.h).
struct TubeListing {
  std::uint64_t made_before;    // the tubes in the list have a lower Tube::made
  std::uint64_t left;           // names that were not returned yet
  std::uint64_t removals_seen;  // how many removals it has read, of all that ever were
  std::size_t next = 0;         // position of the first tube that was not visited
};

// The timer is armed while the client waits and a moment is known that will end its waiting: its
// time-out, or the deadline of a job that it holds.
struct Client : TimerNode {
  explicit Client(ClientId named) : id(named) {}

  using InOrderReserved = boost::intrusive::list<
      LoadedJob, boost::intrusive::member_hook<LoadedJob, boost::intrusive::list_member_hook<>,
                                               &LoadedJob::holding_hook>>;
  using ByDeadlineSet = boost::intrusive::multiset<
      LoadedJob, boost::intrusive::compare<ByDeadline>,
      boost::intrusive::member_hook<LoadedJob, LoadedJob::OrderHook, &LoadedJob::order_hook>>;
  struct TubeOf {
    using type = Tube*;  // NOLINT(readability-identifier-naming): Boost asks for this name
    type operator()(const Watch& watch) const { return watch.tube; }
  };
  using ByTubeSet = boost::intrusive::set<
      Watch, boost::intrusive::key_of_value<TubeOf>,
      boost::intrusive::member_hook<Watch, decltype(Watch::tube_hook), &Watch::tube_hook>>;

  bool watches_tube(Tube& tube) const { return by_tube.find(&tube) != by_tube.end(); }
  // Returns true if one of its jobs has less than kSafetyMargin of its ttr left.
  bool deadline_soon(std::uint64_t mono_from) const {
    return !deadlines.empty() && mono_from + kSafetyMargin >= deadlines.begin()->expiry();
  }

  ClientId id;
  std::string name;
  Tube* tube_in_use = nullptr;
  // Never empty. In beanstalkd's order: when one goes, the last one takes its position.
  std::vector<std::unique_ptr<Watch>> watches;
  ByTubeSet by_tube;  // all watches
  // Only watches before this position may be linked into the lines of their tubes.
  std::size_t in_lines = 0;
  // Links it into Clients::leaving_lines_.
  boost::intrusive::list_member_hook<> leaving_hook;
  // The jobs that the client has reserved, in two orders.
  InOrderReserved held;
  ByDeadlineSet deadlines;
  bool waiting = false;
  // While waiting: it holds more jobs than its share, so it stands in no tube's line.
  bool over_share = false;
  std::optional<TubeListing> listing;
  // While waiting: the monotonic ms of its time-out, or UINT64_MAX if it waits without one.
  std::uint64_t give_up_at = UINT64_MAX;
};

}  // namespace carillon::queue
