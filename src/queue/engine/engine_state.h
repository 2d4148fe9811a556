// All that an engine holds in memory, and the moves that its commands are made of.
//
// A command (engine_producer.cpp, engine_worker.cpp, engine_anyone.cpp) looks jobs up, appends what
// it changes to the store, and only then changes the state below by these moves:
//
//           keep ─> detached ─ place ─> ready │ delayed │ the store alone
//                       ^                 │        │
//                       └──── detach ─────┴────────┤
//                                                  │
//             hand_over: ready, delayed ─> reserved┘
//
// A job is *detached* between two places: in memory, in no collection. No command ends with a
// detached job.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "queue/engine/client.h"
#include "queue/engine/engine_clock.h"
#include "queue/engine/loaded_job.h"
#include "queue/engine/tube.h"

namespace carillon::queue {

struct Engine::State {
  State(Store& in, const EngineOptions& with, const Recovered& recovered, Now now);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // --- Tubes (tubes.cpp)
  Tube* find_tube(std::string_view name);
  Tube& tube_named(std::string_view name);  // made if there is none
  Tube& tube_numbered(
      std::uint32_t number);                // REQUIRES: it exists, as it does for every stored job
  void forget_if_unreferenced(Tube& tube);  // `default` stays
  void use(Client& client, Tube& tube);
  void watch(Client& client, Tube& tube);
  void unwatch(Client& client, std::size_t position);

  // --- Jobs (jobs.cpp)
  LoadedJob* loaded(JobId id);
  std::optional<JobRecord> record_of(JobId id);  // loaded or not
  Sequence known_since(JobId id);  // what a client that is told of the job must wait for
  JobState state_of(const JobRecord& record);  // of one that is not loaded
  JobView view(const JobRecord& record);
  LoadedJob& keep(
      const JobRecord&
          record);  // a detached job for the record. REQUIRES: it is stored, scheduled, not loaded
  void detach(LoadedJob& job);  // out of ready, delayed or reserved
  void place(LoadedJob& job);   // REQUIRES: detached. It may be gone from memory afterwards
  void drop(LoadedJob& job);    // out of memory. REQUIRES: detached
  void make_ready(
      LoadedJob& job);  // REQUIRES: detached. Waiting clients are not served yet: see serve

  // --- The store (changes.cpp). One command's changes are gathered and appended at once; the
  // tubes' counts follow by themselves.
  void add_change(std::optional<JobRecord> before, std::optional<JobRecord> after,
                  std::string_view body = {});
  Sequence append();  // throws StoreError; then nothing has changed

  // --- Loading (loading.cpp)
  DueKey horizon() const;                    // what is due before it is near
  UtcMs time_to_load(UtcMs due_time) const;  // when a job becomes near
  void load_not_after(Tube& tube, UtcMs when);
  void extend_cursor(Tube& tube);  // as far as is known without a look at the store
  void leave_far(Tube& tube,
                 UtcMs due);  // a job of this due time is in the store alone, from now on
  void make_room(
      Tube& tube,
      LoadedJob&
          newest);  // over the bound: the jobs due last leave memory, perhaps `newest` itself
  void room_appeared(Tube& tube);
  std::size_t load(Tube& tube, std::size_t budget);  // from its cursor; how many records were read
  void loading_failed(Tube& tube, const StoreError& error);  // it is tried again later
  void load_what_is_due(Tube& tube);  // all of it, as far as memory is allowed
  std::vector<JobRecord> scan_far(
      Tube& tube, std::size_t limit);  // its delayed jobs in the store alone, by (due, id)

  // --- Reserving (reserving.cpp)
  LoadedJob* best_ready(const Client& client);
  Delivery hand_over(Client& client, LoadedJob& job);  // on kFailed the job was set aside
  void hold(Client& client, LoadedJob& job);           // the job becomes the client's
  void set_aside(LoadedJob& job);  // buries a ready job, so that it stalls nobody
  void serve(Tube& tube);          // its ready jobs to its waiting clients
  void serve(
      std::vector<Tube*>&
          those);  // the same, the lowest (priority, id) of all of them first; uses `those` up
  void serve_next(Tube& tube);  // REQUIRES: it can serve
  void start_waiting(Client& client, std::optional<Millis> timeout);
  void schedule_wake(Client& client);  // at the first moment that may end its waiting
  void end_waiting(Client& client);
  void wait_is_over(Client& client);  // the client's timer has expired

  // --- Time (engine.cpp)
  void advance(Now now);
  void load_what_is_near(std::vector<Tube*>& loaded_tubes);

  // The records as they are -> ready, in one append. REQUIRES: all of one tube, each buried or
  // delayed (engine_anyone.cpp)
  Sequence kick(const std::vector<JobRecord>& records);

  Client& client(ClientId id);

  Store& store;
  const EngineOptions options;
  EngineClock clock;

  // One wheel per kind of timer. Ticks are ms: UTC for due times and loading, monotonic for the
  // rest.
  HierarchicalWheel<> due;      // LoadedJob
  HierarchicalWheel<> loading;  // TubeTimer
  HierarchicalWheel<> ttrs;     // LoadedJob
  HierarchicalWheel<> pauses;   // TubeTimer
  HierarchicalWheel<> waits;    // Client

  boost::unordered_flat_map<JobId, std::unique_ptr<LoadedJob>> jobs;
  std::unordered_map<std::string_view, std::unique_ptr<Tube>>
      tubes;  // keyed by the tube's own name
  std::unordered_map<std::uint32_t, Tube*> tubes_by_number;
  std::vector<Tube*> tube_order;  // beanstalkd's order: the last one fills the gap of one that goes
  Tube* default_tube = nullptr;
  std::unordered_map<ClientId, std::unique_ptr<Client>> clients;

  Watermarks stored_marks;  // as they stand in the store
  JobId next_id;
  std::uint64_t next_burial;
  std::uint32_t next_tube = 1;
  ClientId next_client = 1;
  Sequence last_sequence = 0;

  Changes changes;  // being gathered; empty between commands
  std::vector<Delivery> deliveries;
  std::optional<std::string> load_failure;  // of the last try, until Engine::advance has told of it
  std::uint64_t total_jobs = 0;
  std::uint64_t timeouts = 0;
};

}  // namespace carillon::queue
