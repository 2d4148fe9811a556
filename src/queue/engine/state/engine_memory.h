// All that an engine holds in memory. engine_state.h has the moves that change it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "carillon/queue/detail/split_table.h"
#include "carillon/queue/engine.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "queue/engine/jobs/loaded_job.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/tubes/tube.h"
#include "queue/engine/tubes/tube_directory.h"
#include "queue/engine/tubes/tube_removals.h"
#include "queue/engine/workers/client.h"

namespace carillon::queue {

// How long to wait for a store that has no room, in ms.
inline constexpr Millis kAwaitRoom = 20;

struct EngineMemory {
  EngineMemory(Store& in, const EngineOptions& with, const Recovered& recovered, Now now);

  // Calls `call` with each tube and each lane.
  template <class Call>
  void for_each_tube(Call call) const {
    for (Tube* tube : tube_order) call(*tube);
    for (Tube* lane : lanes) call(*lane);
  }
  // Counts jobs that are ready from now on, or, with a difference below 0, not any more.
  void count_ready(Tube& tube, std::int64_t ready, std::int64_t urgent) {
    sums.ready += static_cast<std::uint64_t>(ready);
    sums.urgent += static_cast<std::uint64_t>(urgent);
    if (!tube.turn) return;
    tube.sums()->ready += static_cast<std::uint64_t>(ready);
    tube.sums()->urgent += static_cast<std::uint64_t>(urgent);
  }

  Store& store;
  const EngineOptions options;
  EngineClock clock;

  // One wheel for each kind of timer. A tick is 1 ms. The first three run on EngineClock::tick(),
  // the others on the monotonic clock.
  // A call of `advance` reads at most kWheelEntries entries, some 50 us of work, besides those that
  // its limit allows.
  static constexpr std::size_t kWheelEntries = 4'096;
  using Wheel = HierarchicalWheel<BinaryDigits<8>, 64, kWheelEntries>;
  Wheel due;       // of TubeTimer: when a tube's first delayed job is ready
  Wheel loading;   // of TubeTimer: when more of a tube's jobs must be loaded, or counted
  Wheel expiries;  // of LoadedJob: when a ready job expires
  Wheel ttrs;      // of LoadedJob: when a reserved job's ttr is over
  Wheel pauses;    // of TubeTimer: when a tube's jobs may be handed out again
  Wheel waits;     // of Client: when a client's waiting ends

  using RipeningLine = boost::intrusive::list<
      Tube, boost::intrusive::member_hook<Tube, boost::intrusive::list_member_hook<>,
                                          &Tube::ripening_hook>>;
  RipeningLine ripening;  // the tubes take turns

  detail::SplitTable<boost::unordered_flat_map<JobId, std::unique_ptr<LoadedJob>>> jobs;
  TubeDirectory tubes;
  // In beanstalkd's order: when a tube goes, the last one takes its position. A vector would move
  // all of them when it grows.
  std::deque<Tube*> tube_order;
  std::deque<Tube*> lanes;  // those of groups (groups.h), which are not in that order
  Tube* default_tube = nullptr;
  std::uint64_t tubes_made = 0;
  std::uint64_t name_bytes = 0;  // of all tubes

  TubeRemovals removals;  // while lists of tubes are being read
  std::unordered_map<ClientId, std::unique_ptr<Client>> clients;
  // Clients that have disconnected, and still hold jobs or watch tubes. They take turns.
  std::list<std::unique_ptr<Client>> gone;
  // Clients that wait no more, and of which watches still stand in lines. They take turns.
  using LeavingLines = boost::intrusive::list<
      Client, boost::intrusive::member_hook<Client, boost::intrusive::list_member_hook<>,
                                            &Client::leaving_hook>>;
  LeavingLines leaving_lines;

  // Holds the jobs whose reservations are over, or that have expired, until that is stored.
  Client pending_endings{0};
  struct QueuedEnding {
    std::optional<Ending> ending;  // of an attempt; none: the job was cancelled or has expired
    std::string worker;
  };
  detail::SplitTable<boost::unordered_flat_map<JobId, QueuedEnding>> queued_endings;  // those jobs
  // The turn of the job whose end was stored last. A reserved job has a deadline, so the turns are
  // deadlines that never come.
  Tick end_turn = Tick{1} << 63U;
  // Holds those of them that have expired by a clock in doubt: no worker gets them, and they do not
  // end yet. The next decision is about the first `to_decide` of them.
  Client doubted{0};
  std::size_t to_decide = 0;
  std::uint64_t endings_at = 0;  // not before this monotonic ms

  const std::int64_t lead_before;  // EngineClock::lead() when the engine before this one ended
  Watermarks stored_marks;         // as they stand in the store
  bool clock_is_stored = false;    // stored_marks has what is to be known of the clock
  std::int64_t job_lead;           // the highest that is in the record of a job
  // The tubes (numbers) in which jobs are too late, perhaps. The last one is being looked through,
  // from a job on, at a moment. Those that are not there any more are passed over.
  std::vector<std::uint32_t> to_place;
  DueKey place_from;
  Tick place_at = 0;
  // Of the keys whose jobs are gone: none ends before `keys_from`. `keys_end` is when to look for
  // those that have ended. Both by steady time, in ms.
  Millis keys_from = 0;
  Millis keys_end = 0;
  JobId next_id;
  std::uint64_t next_burial;
  std::uint32_t next_tube = 1;
  ClientId next_client = 1;
  Sequence last_sequence = 0;

  Changes changes;  // being gathered
  std::vector<Delivery> deliveries;
  // Why jobs could not be loaded, until Engine::advance has thrown it.
  std::optional<std::string> load_failure;
  // Of all tubes together, far jobs too. `delayed` and `loaded` are not kept here.
  JobCounts sums;
  std::uint64_t scheduled = 0;
  std::uint64_t waiting = 0;  // clients
  std::size_t watches = 0;    // of all clients
  std::uint64_t timeouts = 0;
  std::uint64_t fired = 0;
  Lateness lateness;
  EngineTotals totals;
  std::uint64_t far_counts = 0;  // tubes that have one

  Endpoints endpoints;
  std::uint64_t endpoint_changes = 0;  // so far
};

}  // namespace carillon::queue
