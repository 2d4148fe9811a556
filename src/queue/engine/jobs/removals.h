// Deletes jobs: what is stored of it, and what follows in memory.
//
//   removals.add(record, Work::kNotDone);       // for each job
//   appender.append();
//   removals.finish(record);                    // for each job
//
// Owns nothing.
#pragma once

#include <optional>

#include "carillon/queue/store.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/state/planned.h"
#include "queue/engine/workers/client.h"

namespace carillon::queue {

class Removals {
 public:
  Removals(Appender& appender, EngineCounts& counts, Tubes& tubes, LoadedJobs& jobs, FarJobs& far,
           Keys& keys, Clients& clients)
      : appender_(appender),
        counts_(counts),
        tubes_(tubes),
        jobs_(jobs),
        far_(far),
        keys_(keys),
        clients_(clients) {}

  // Returns the record of the job if the client may delete it.
  std::optional<JobRecord> record_for(const Client& client, JobId id) const;
  // Returns whether deleting this job means that its work was done.
  Work work_of(const JobRecord& record) const;
  // Gathers a deletion.
  void add(const JobRecord& record, Work work);
  // Carries out a deletion in memory. Returns the tube, which may be unreferenced then; the caller
  // serves it if it has limits. REQUIRES: the deletion was appended.
  Tube& finish(const JobRecord& record) noexcept;
  // All of it. Returns the append.
  Sequence remove(const JobRecord& record, Work work);

 private:
  Appender& appender_;
  EngineCounts& counts_;
  Tubes& tubes_;
  LoadedJobs& jobs_;
  FarJobs& far_;
  Keys& keys_;
  Clients& clients_;
};

}  // namespace carillon::queue
