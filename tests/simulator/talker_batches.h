// What a simulated client has to say about many jobs at once: put-jobs, reserve-jobs, delete-jobs
// and release-jobs. There are few tokens, and some batches are sent again.
#pragma once

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/disk.h"
#include "simulator/model.h"

namespace carillon::simulator {

Command random_put_jobs(const Model& model, Random& random, queue::Now now);
Command random_reserve_jobs(Random& random);
// Mostly of jobs that the client holds.
Command random_delete_jobs(const Model& model, ClientNumber client, Random& random);
Command random_release_jobs(const Model& model, ClientNumber client, Random& random);

}  // namespace carillon::simulator
