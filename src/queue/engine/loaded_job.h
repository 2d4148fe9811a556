// A job in memory: its record, its timer, and the one or two collections it stands in.
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <compare>
#include <cstdint>
#include <tuple>

#include "carillon/queue/job.h"
#include "carillon/queue/store.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::queue {

struct Client;
struct Tube;

// The timer is armed while the job is delayed (on the wheel of due times) or reserved (on the wheel
// of ttrs: its deadline).
struct LoadedJob : TimerNode {
  LoadedJob(const JobRecord& stored, Tube& in, Sequence since)
      : record(stored), history(stored.history), tube(&in), sequence(since) {}

  DueKey due_key() const { return {record.due, record.id}; }

  JobRecord record;    // exactly as it stands in the store
  JobHistory history;  // runs ahead of the record's: it is stored along with the next change
  Tube* tube;
  Sequence
      sequence;  // of the append that made the record what it is; whoever is told of the job must wait for it
  JobState state = JobState::kDelayed;
  Client* holder = nullptr;  // while reserved

  using OrderHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;
  OrderHook order_hook;  // in its tube's ready or delayed jobs, or its holder's jobs by deadline
  boost::intrusive::list_member_hook<> holding_hook;  // in its holder's jobs in the order reserved
};

// The order in which ready jobs go out.
struct ByPriority {
  bool operator()(const LoadedJob& a, const LoadedJob& b) const {
    return std::tie(a.record.priority, a.record.id) < std::tie(b.record.priority, b.record.id);
  }
};

// The order in which delayed jobs become ready.
struct ByDue {
  bool operator()(const LoadedJob& a, const LoadedJob& b) const {
    return a.due_key() < b.due_key();
  }
};

// The order in which reserved jobs run out of their ttr.
struct ByDeadline {
  bool operator()(const LoadedJob& a, const LoadedJob& b) const {
    return std::pair(a.expiry(), a.record.id) < std::pair(b.expiry(), b.record.id);
  }
};

}  // namespace carillon::queue
