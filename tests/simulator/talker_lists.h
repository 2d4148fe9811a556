// What a simulated client has to say about the jobs of a tube: list-jobs and due-counts, and
// cancel-jobs, retry-jobs and move-jobs with random filters.
#pragma once

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/disk.h"

namespace carillon::simulator {

Command random_list(Random& random, queue::Now now);
Command random_due_counts(Random& random);
Command random_bulk(Random& random, queue::Now now);

}  // namespace carillon::simulator
