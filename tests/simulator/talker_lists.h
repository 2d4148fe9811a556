// What a simulated client has to say about the jobs of a tube: listJobs, listGroups and
// getDue, and cancelJobs, retryJobs, moveJobs and spreadJobs with random filters.
#pragma once

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/disk.h"
#include "simulator/model.h"

namespace carillon::simulator {

// Now and then it is the page that follows on the last one; the same of a change of many jobs.
Command random_list(const Model& model, Random& random, queue::Now now);
Command random_list_groups(Random& random);
Command random_due_counts(Random& random);
Command random_bulk(const Model& model, Random& random, queue::Now now);

}  // namespace carillon::simulator
