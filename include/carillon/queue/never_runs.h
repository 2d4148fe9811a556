// Why a put or a patch is refused that names a time to be due, and one to expire that is not later:
// no worker would ever get the job.
//
//   try {
//     engine.put(client, now, {.due_in = 3'600'000, .expires_in = 1'800'000}, "hello");
//   } catch (const NeverRuns& refused) {
//     refused.what();  // "the job would expire in 1800000 ms, and be due in 3600000 ms: no ..."
//   }
//
// All of a spread counts: else it would be chance whether the job runs. A job that is ready at once
// may have expired already, and one that is put buried is not asked. Nothing was changed.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "carillon/queue/job.h"

namespace carillon::queue {

class NeverRuns : public std::invalid_argument {
 public:
  // In how many ms from now on the job would be due, at the latest, and would expire.
  NeverRuns(Millis due_in, Millis expires_in);

  std::size_t job = 0;  // its position in a batch, from 0
};

}  // namespace carillon::queue
