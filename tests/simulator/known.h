// What the model knows of a job and of a client (model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "carillon/queue/job.h"
#include "carillon/queue/retry.h"

namespace carillon::simulator {

using ClientNumber = std::uint64_t;

enum class Certainty : std::uint8_t { kNo, kMaybe, kYes };

struct KnownJob {
  // A whole millisecond is rounded up, and a timer fires in the next one.
  static constexpr std::uint64_t kSlack = 2'000'000;  // ns

  std::string tube;
  std::string group = {};  // empty: none
  queue::Priority priority = 0;
  std::uint64_t moment = 0;     // that a client has named: not before; ns, UTC
  std::uint64_t delay_end = 0;  // not before; ns, monotonic
  std::uint64_t slack = kSlack;
  queue::JobRecord record = {};  // as a client changed it last
  queue::Millis ttr = 0;
  std::string key = {};
  queue::Millis key_window = 0;
  queue::RetryPolicy retry = {};
  std::string attributes = {};
  std::uint32_t attempts = 0;  // that have failed
  queue::Death death = queue::Death::kNone;
  std::uint64_t died = 0;                      // when a dead one died: not before; ns, monotonic
  queue::UtcMs expires = 0;                    // 0: never
  std::int64_t expires_lead = queue::kNoLead;  // see queue::JobExtras
  queue::AtExpiry at_expiry = queue::AtExpiry::kDrop;
  // The wall clock has shown that moment, beyond doubt, and that the job is due, and was set back
  // since: the
  // engine may be about to store the end of the job.
  bool has_seen_expiry = false;
  bool cancel_asked = false;
  std::vector<queue::Attempt> story = {};
  std::uint64_t burial = 0;    // the larger, the later; 0: not buried
  ClientNumber holder = 0;     // 0: nobody
  std::uint64_t deadline = 0;  // ns, monotonic
  std::uint64_t deadline_slack = kSlack;
  // Whether its reservation is over, and this must be stored before anybody else gets the job: its
  // worker is gone, or its time was over when a policy was changed. kMaybe: that time may have been
  // over, and the job still has its holder. `endings`: how that attempt may have ended.
  Certainty entrusted = Certainty::kNo;
  std::set<queue::Ending> endings = {};
  std::uint64_t entrusted_at = 0;  // ns, monotonic
  // The engine had ended its attempt by then; perhaps after a command had begun.
  std::uint64_t freed_at = 0;
  ClientNumber worker = 0;  // who has held it last
  bool worker_has_name = false;
  bool by_id = false;        // its holder has asked for this one: no limit was in its way
  std::size_t position = 0;  // in the list of all ids
  std::uint64_t change = 0;  // the number of its last change
};

struct KnownClient {
  std::string tube_in_use = "default";
  std::vector<std::string> watched{"default"};
  std::set<queue::JobId> held;
  std::uint64_t waits_as = 0;            // the larger, the later; 0: it does not wait
  std::optional<std::uint64_t> give_up;  // ns, monotonic
  // Whether it has stood in line since it waits: not if it held too many jobs.
  Certainty in_line = Certainty::kYes;
  std::optional<std::uint64_t> room_since;  // if not: since when it holds fewer; ns, monotonic
  bool ended = false;
  bool has_name = false;
  std::uint64_t kicked = 0;  // by a kick that is not answered yet
  bool kicks_buried = false;
  // For a delete-jobs or release-jobs that is not answered yet: the jobs that it has changed; jobs
  // that it has deleted or that have ended by themselves; and whether others came in between.
  std::set<queue::JobId> each_done = {};
  std::set<queue::JobId> each_maybe = {};
  bool each_in_parts = false;
  // The same of a cancelJobs, retryJobs, moveJobs or spreadJobs.
  std::uint64_t bulk_changed = 0;
  std::uint64_t bulk_maybe = 0;
  std::uint64_t bulk_append = 0;  // the last one of them
  bool bulk_in_parts = false;     // and of a listJobs or getDue
  std::size_t wanted = 0;         // by a reserve-jobs that waits; 0: it is a reserve
  queue::JobId body = 0;          // a large one that it puts
};

}  // namespace carillon::simulator
