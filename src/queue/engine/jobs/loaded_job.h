// A job in memory: its record, its timer, and the links to the collections that it is in.
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

// The timer is armed while the job is reserved: its expiry is the deadline. A delayed job does not
// use it: its tube has one timer for all of them (Tube::due_time).
struct LoadedJob : TimerNode {
  LoadedJob(const JobRecord& stored, Tube& in, Sequence since)
      : record(stored), history(stored.history), tube(&in), sequence(since) {}

  // The job's place in the order of the store.
  DueKey due_key() const { return {record.due, record.id}; }

  // As it is in the store.
  JobRecord record;
  // Newer than the record's history; stored with the next change.
  JobHistory history;
  Tube* tube;
  // The append that wrote the record. A client may learn of the job once that append is durable.
  Sequence sequence;
  JobState state = JobState::kDelayed;
  bool took_token = false;      // when it was reserved last (throttle.h)
  bool took_own_token = false;  // of its group's own limits
  // The job is reserved, or its reservation has just ended, and the store has a lease of it.
  bool has_stored_lease = false;
  // While the job is delayed: Placing::due_of(record), as of the last step of the wall clock.
  UtcMs due_at = 0;
  // The client that has reserved the job; else nullptr.
  Client* holder = nullptr;

  using OrderHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;
  // Links it into its tube's ready or delayed jobs, or into its holder's jobs by deadline.
  OrderHook order_hook;
  // Links it into its holder's jobs in the order reserved.
  boost::intrusive::list_member_hook<> holding_hook;
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
    return std::pair(a.due_at, a.record.id) < std::pair(b.due_at, b.record.id);
  }
};

// The order in which reserved jobs run out of their ttr.
struct ByDeadline {
  bool operator()(const LoadedJob& a, const LoadedJob& b) const {
    return std::pair(a.expiry(), a.record.id) < std::pair(b.expiry(), b.record.id);
  }
};

}  // namespace carillon::queue
