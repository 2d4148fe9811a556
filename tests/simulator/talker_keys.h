// What a simulated client has to say about jobs with keys: put-job, patch-job, cancel-job,
// buryJob, peek-job and getJob with random options. There are few keys, so that puts often meet
// another job.
//
//   Command command = random_put_job(random, now, random_body(random));
#pragma once

#include <cstddef>
#include <string>

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/disk.h"
#include "simulator/model.h"

namespace carillon::simulator {

Command random_put_job(Random& random, queue::Now now, std::string body);
// With a new body of up to `most_bytes`, if it has one.
Command random_patch(const Model& model, Random& random, queue::Now now, std::size_t most_bytes);
Command random_cancel(const Model& model, Random& random);
Command random_bury_job(const Model& model, Random& random);
Command random_show_job(const Model& model, Random& random);
Command random_peek_job(const Model& model, Random& random);

}  // namespace carillon::simulator
