// A client of the engine: the tube it uses, the tubes it watches, the jobs it holds, and whether it
// waits for one.
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

// One client's interest in one tube; while the client waits in a reserve it stands in the tube's
// line of waiting clients.
struct Watch {
  Watch(Client& by, Tube& of) : client(&by), tube(&of) {}

  Client* client;
  Tube* tube;
  boost::intrusive::list_member_hook<> waiting_hook;
};

// The timer is armed while the client waits and something is to end that: its time-out, or the
// deadline of a job that it holds.
struct Client : TimerNode {
  explicit Client(ClientId named) : id(named) {}

  using InOrderReserved = boost::intrusive::list<
      LoadedJob, boost::intrusive::member_hook<LoadedJob, boost::intrusive::list_member_hook<>,
                                               &LoadedJob::holding_hook>>;
  using ByDeadlineSet = boost::intrusive::multiset<
      LoadedJob, boost::intrusive::compare<ByDeadline>,
      boost::intrusive::member_hook<LoadedJob, LoadedJob::OrderHook, &LoadedJob::order_hook>>;

  // The job it holds that has the least time left has less than the safety margin.
  bool deadline_soon(std::uint64_t mono_from) const {
    return !deadlines.empty() && mono_from + kSafetyMargin >= deadlines.begin()->expiry();
  }

  ClientId id;
  Tube* used = nullptr;
  std::vector<std::unique_ptr<Watch>>
      watches;  // never empty; in beanstalkd's order: the last one fills the gap of one that goes
  InOrderReserved held;
  ByDeadlineSet deadlines;  // the same jobs
  bool waiting = false;
  std::uint64_t give_up_at =
      UINT64_MAX;  // while waiting: the monotonic ms of its time-out, if it has one
};

}  // namespace carillon::queue
