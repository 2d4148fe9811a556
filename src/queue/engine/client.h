// A client of the engine: its tube in use, the tubes that it watches, the jobs that it holds, and
// whether it waits for a job.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "carillon/queue/engine.h"
#include "queue/engine/loaded_job.h"

namespace carillon::queue {

// Says that a client watches a tube. While the client waits in a reserve, each of its Watches is
// linked into the line of waiting clients of its tube.
struct Watch {
  Watch(Client& by, Tube& of) : client(&by), tube(&of) {}

  Client* client;
  Tube* tube;
  boost::intrusive::list_member_hook<> waiting_hook;
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

  // Returns true if one of its jobs has less than kSafetyMargin of its ttr left.
  bool deadline_soon(std::uint64_t mono_from) const {
    return !deadlines.empty() && mono_from + kSafetyMargin >= deadlines.begin()->expiry();
  }

  ClientId id;
  Tube* tube_in_use = nullptr;
  // Never empty. In beanstalkd's order: when one goes, the last one takes its position.
  std::vector<std::unique_ptr<Watch>> watches;
  // The jobs that the client has reserved, in two orders.
  InOrderReserved held;
  ByDeadlineSet deadlines;
  bool waiting = false;
  // While waiting: the monotonic ms of its time-out, or UINT64_MAX if it has none.
  std::uint64_t give_up_at = UINT64_MAX;
};

}  // namespace carillon::queue
