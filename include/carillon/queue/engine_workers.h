// The part of the engine for workers: they watch tubes, reserve jobs, and say how each job has
// ended.
//
//   engine.watch(client, "mail");
//   if (auto got = engine.reserve(client, now, 10'000)) work_on(got->job);
//   ...                                       // else take_deliveries() has the answer later
//   engine.remove(client, now, job);          // done (engine_jobs.h)
//   engine.fail(client, now, job, {.error = "no such address"});    // try it again, or bury it
//   engine.release(client, now, job, 0, 60'000);                    // somebody else, in a minute
//
// engine.h has the contracts that all methods keep. All methods REQUIRE: the client is connected,
// and, except for `stop_waiting` and `holds_jobs`, does not wait in a reserve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/now.h"

namespace carillon::queue {

struct EngineState;  // private

class EngineWorkers {
 public:
  // The most tubes that a client may watch. A reserve visits each of them.
  static constexpr std::size_t kMaxWatched = 10'000;
  // Returns the number of tubes that the client watches then. Throws OverLimit if that would be
  // more than kMaxWatched, or if there are as many tubes as there may be.
  std::size_t watch(ClientId client, std::string_view tube);
  // Returns the number of tubes that the client watches then; none if `tube` is the only one that
  // it watches: then it still watches it.
  std::optional<std::size_t> ignore(ClientId client, std::string_view tube);
  std::vector<std::string> watched(ClientId client) const;

  // Reserves the ready job with the lowest (priority, id) in the watched tubes that are not paused,
  // and whose limits let one more job go out (limits.h). While many jobs of a tube become ready at
  // once, in steps, no job of it goes out: the order applies to all of them. Returns none if the
  // client has to wait. Then take_deliveries() has its Delivery later: at the latest after
  // `timeout` ms, or without limit if there is no timeout. A timeout of 0 is answered at once,
  // unless many expired jobs stand before the others: then as soon as the next calls of `advance`
  // have taken them away. O(tubes that the client watches): about 0.1 µs for each.
  std::optional<Delivery> reserve(ClientId client, Now now, std::optional<Millis> timeout);
  // Reserves one more job, after a reserve, for a reply that has room for a body of `most` bytes.
  // If no job is ready now, or the next one has a larger body, returns none and changes nothing:
  // the group keeps its turn, and the tube its token.
  std::optional<JobView> reserve_next(ClientId client, Now now, std::uint64_t most);
  // Reserves the given job if it is ready, delayed or buried: the only way to get a job before it
  // is due. No limit of its tube holds it back, but it counts: it runs, and takes a token if there
  // is one. Returns none if there is no such job, or if it is reserved; else a Delivery that is
  // kReserved. When the ttr of a job that was delayed is over, it is delayed until its own time.
  std::optional<Delivery> reserve_job(ClientId client, Now now, JobId id);
  // Ends the client's waiting with kTimedOut, because it has closed its half of the connection.
  // Does nothing if the client does not wait.
  void stop_waiting(ClientId client);

  // Returns true if a job with this delay (ms) would be due by kLastDue. A caller checks this
  // before `release`, whose Outcome has no way to say so.
  bool fits(Now now, Millis delay) const;

  // The methods below work on jobs that the client has reserved.

  // Makes the job ready, or delayed if `delay` (ms) is not 0. Throws std::out_of_range if the delay
  // does not fit: see `fits`.
  Outcome release(ClientId client, Now now, JobId id, Priority priority, Millis delay);
  // The same for many jobs, with one append. Without a priority each job keeps its own. Returns an
  // outcome for each id; if an id comes twice, it is done once.
  std::vector<Outcome> release_all(ClientId client, Now now, std::span<const JobId> ids,
                                   std::optional<Priority> priority, Millis delay);
  Outcome bury(ClientId client, Now now, JobId id, Priority priority);
  // The job's ttr begins anew; this time it lasts `ttr`, if that is given (ms; it becomes at
  // least kMinTtr and at most kMaxTtr). Appends nothing.
  Outcome touch(ClientId client, Now now, JobId id, std::optional<Millis> ttr = std::nullopt);
  // Makes leases of what the client has reserved: stored reservations, which outlive the server.
  // Each lasts `time` ms from now, or without it the job's ttr (at least kMinTtr, at most kMaxTtr).
  // A second call makes the leases begin anew. Jobs that the client does not hold are left out.
  // When a lease is over, it ends as a ttr does, also if the server did not run then. After a
  // restart, one client for each secret holds the leases (former_workers()).
  Leased lease(ClientId client, Now now, std::span<const JobId> ids, std::string_view secret,
               std::optional<Millis> time);
  // Returns who has reserved the job; none if nobody has.
  std::optional<ClientId> holder_of(JobId id) const;
  // Returns the clients that held leases when the engine began. The caller disconnects each when it
  // holds no job any more.
  const std::vector<FormerWorker>& former_workers() const;
  // The attempt has failed: counts it, adds it to the job's story (retry.h), and buries the job if
  // it was the last one; otherwise makes it ready or delayed. Without a policy no attempt is the
  // last one. Throws std::out_of_range as `release` does.
  FailOutcome fail(ClientId client, Now now, JobId id, const Failure& failure);
  // Returns true if a client has asked for the job's cancel. The worker may delete it, or stop in
  // any other way: a release, bury, fail, lost connection or time-out deletes the job then, too.
  bool cancel_asked(ClientId client, JobId id) const;
  // Makes the job ready again, or delayed if it is not due yet, as if it had not been reserved: its
  // history does not show the reserve, and its token goes back, but not the turn of its group. Use
  // it for a job whose body cannot be read now. Appends nothing. Returns false if the client does
  // not hold it.
  bool give_back(ClientId client, Now now, JobId id);
  // Returns true if the client has reserved the job, by the time of the last call.
  bool holds(ClientId client, JobId id) const;
  // Returns true if the client has reserved any job.
  bool holds_jobs(ClientId client) const;

 protected:
  explicit EngineWorkers(EngineState& state) : state_(state) {}
  ~EngineWorkers() = default;

 private:
  EngineState& state_;
};

}  // namespace carillon::queue
