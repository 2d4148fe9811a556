// The clients: what they watch and hold, how they wait for jobs, and what they leave behind.
//
//   if (LoadedJob* job = clients.best_ready(client)) return clients.hand_over(client, *job);
//   clients.start_waiting(client, 10'000);          // take_deliveries() has the answer later
//   clients.serve(tube);                            // a job is ready: a client that waits gets it
//
// A client with many jobs or watches leaves them in steps: each call does a part, and clear_up()
// the rest.
//
// Owns the clients, also those that have disconnected and still hold jobs, the wheels of their ttrs
// and waits, and the deliveries that nobody has taken yet. Invariants: each reserved job has a
// holder, or its end is queued (endings.h), and is on the wheel of ttrs; no client waits while a
// job that it may get is ready.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_options.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/tubes/tube.h"
#include "queue/engine/workers/client.h"

namespace carillon::queue {

class Clients {
 public:
  Clients(const EngineOptions& options, const EngineClock& clock, Appender& appender,
          EngineCounts& counts, Tubes& tubes, LoadedJobs& jobs, FarJobs& far, Endings& endings,
          Throttle& throttle)
      : options_(options),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        tubes_(tubes),
        jobs_(jobs),
        far_(far),
        endings_(endings),
        throttle_(throttle),
        ttrs_(clock.mono()),
        waits_(clock.mono()) {}
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // --- Coming and going

  Client& connect();
  // Throws std::out_of_range if it is not connected.
  Client& client(ClientId id) const { return *clients_.at(id); }
  void disconnect(ClientId id);
  void use(Client& client, Tube& tube);
  void watch(Client& client, Tube& tube);
  void unwatch(Watch& watch);
  // Clears up a part of what clients have left behind.
  void clear_up(std::size_t budget);
  bool has_left_anything() const { return !gone_.empty() || !leaving_lines_.empty(); }

  // --- Reserving

  // Returns the ready job of the tube that goes out next; nullptr if none may go out now. Queues
  // the ends of expired jobs before it, a few at most: `advance` goes on with the rest.
  LoadedJob* first_ready(Tube& tube);
  // Returns true if a client waits for the tube's first_ready().
  bool can_serve(Tube& tube) { return tube.first_waiting() != nullptr && first_ready(tube); }
  // Returns the ready job that the client gets if it reserves now; nullptr if it gets no job.
  LoadedJob* best_ready(const Client& client);
  bool is_hidden(const Client& client);  // maybe behind expired jobs, until `advance` ends these
  // Lets the client hold the ready job, and returns the Delivery.
  Delivery hand_over(Client& client, LoadedJob& job);
  void hold(Client& client, LoadedJob& job) noexcept;
  // Gives the tube's ready jobs to the clients that wait for them; if `tube` is a lane, those of
  // its head. Frees nothing: references to jobs and tubes stay valid.
  void serve(Tube& tube) noexcept;
  // The same for many tubes: the lowest (priority, id) of all goes out first. Empties `those`.
  void serve(std::vector<Tube*>& those) noexcept;
  void start_waiting(Client& client, std::optional<Millis> timeout);
  // Ends the client's wait with this answer.
  void end_waiting(Client& client, Delivery::Kind with);
  // Returns false if the client holds as many jobs as it may (EngineOptions::max_reserved).
  bool may_hold_more(const Client& client) const;
  std::vector<Delivery> take_deliveries() { return std::exchange(deliveries_, {}); }

  // --- Reserved jobs

  // The ttr of the reserved job is over at this monotonic ms, and not at an earlier set time.
  void set_deadline(LoadedJob& job, std::uint64_t mono);
  void begin_reservation(LoadedJob& job, Client& holder, std::uint64_t mono) noexcept;
  void end_reservation(LoadedJob& job) noexcept;

  // Calls `call` with up to about `budget` jobs whose ttr is over.
  template <class Call>
  void advance_ttrs(std::size_t budget, Call call) {
    ttrs_.advance(
        clock_.mono(), [&call](TimerNode& node) { call(static_cast<LoadedJob&>(node)); }, budget);
  }
  // Ends waits whose time is over.
  void advance_waits(std::size_t budget);
  const EngineWheel& ttrs() const { return ttrs_; }
  const EngineWheel& waits() const { return waits_; }
  // Aborts if a client waits in the tube (no lane) though a job is ready for it. For tests.
  void check_invariants(Tube& tube) const;
  // Aborts if an invariant of the clients is broken. `reserved` jobs are reserved, `queued` of them
  // have ended, and the lines of tubes have `in_lines` entries. For tests.
  void check_invariants(std::uint64_t reserved, std::size_t queued, std::size_t in_lines) const;

 private:
  // One call of a client that watches or holds many does at most this many of the following.
  static constexpr std::size_t kLeaveAtOnce = 64;

  // Takes up to `budget` watches of a client that does not wait out of the lines of their tubes.
  // Returns how many it has visited.
  std::size_t leave_lines(Client& client, std::size_t budget);
  // Makes ready the jobs of a client that has disconnected, and then ends its watches: up to
  // `budget` of both together. Returns how many it has ended.
  std::size_t give_up(Client& client, std::size_t budget);
  // REQUIRES: can_serve(tube).
  void serve_next(Tube& tube);
  void stand_in_lines(Client& client);
  // A waiting client that held too many jobs holds fewer now.
  void let_reserve(Client& client);
  // Arms the client's timer for the first moment that may end its waiting.
  void schedule_wake(Client& client);
  // The client stays in the lines of some of its tubes if it watches many: see leave_lines().
  void end_waiting(Client& client);
  // The client's timer has expired.
  void wait_is_over(Client& client);

  const EngineOptions& options_;
  const EngineClock& clock_;
  Appender& appender_;
  EngineCounts& counts_;
  Tubes& tubes_;
  LoadedJobs& jobs_;
  FarJobs& far_;
  Endings& endings_;
  Throttle& throttle_;
  EngineWheel ttrs_;   // LoadedJobs: when a reserved job's ttr is over
  EngineWheel waits_;  // Clients: when a client's wait ends
  std::unordered_map<ClientId, std::unique_ptr<Client>> clients_;
  ClientId next_id_ = 1;
  // Clients that have disconnected, and still hold jobs or watch tubes. They take turns.
  std::list<std::unique_ptr<Client>> gone_;
  // Clients that have stopped waiting, but still stand in lines of tubes. They take turns.
  using LeavingLines = boost::intrusive::list<
      Client, boost::intrusive::member_hook<Client, boost::intrusive::list_member_hook<>,
                                            &Client::leaving_hook>>;
  LeavingLines leaving_lines_;
  std::vector<Delivery> deliveries_;
};

}  // namespace carillon::queue
