// Thrown if a put or a patch names a due time, and an expiry that is not later: no worker would
// ever get the job.
//
//   try {
//     engine.put(client, now, {.due_in = 3'600'000, .expires_in = 1'800'000}, "hello");
//   } catch (const NeverRuns& refused) {
//     refused.what();  // "the job would expire in 1800000 ms, and be due in 3600000 ms: no ..."
//   }
//
// The whole spread counts: otherwise it would be chance whether the job runs. A job that is ready
// at once may have expired already, and a job that is put buried is not checked. Nothing was
// changed.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "carillon/queue/job.h"

namespace carillon::queue {

class NeverRuns : public std::invalid_argument {
 public:
  // The job would be due in at most `due_in` ms from now on, and would expire in `expires_in` ms.
  NeverRuns(Millis due_in, Millis expires_in);

  std::size_t job = 0;  // its position in a batch, from 0
};

}  // namespace carillon::queue
