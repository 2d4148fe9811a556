// The random commands of which a talker (talker.h) chooses one. There are few keys, tokens and
// schedules, so that commands often meet what others have left.
//
//   Command command = random_put_job(random, now, random_body(random));
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/disk.h"
#include "simulator/model.h"

namespace carillon::simulator {

// --- Jobs that may have keys (talker_keys.cpp).

Command random_put_job(Random& random, queue::Now now, std::string body);
// With a new body of up to `most_bytes`, if it has one.
Command random_patch(const Model& model, Random& random, queue::Now now, std::size_t most_bytes);
Command random_cancel(const Model& model, Random& random);
Command random_bury_job(const Model& model, Random& random);
Command random_show_job(const Model& model, Random& random);
Command random_peek_job(const Model& model, Random& random);

// --- Many jobs at once (talker_batches.cpp); some batches are sent again.

Command random_put_jobs(const Model& model, Random& random, queue::Now now);
Command random_reserve_jobs(Random& random);
// Mostly of jobs that the client holds.
Command random_delete_jobs(const Model& model, ClientNumber client, Random& random);
Command random_release_jobs(const Model& model, ClientNumber client, Random& random);

// --- Attempts, and what is set for tubes (talker_attempts.cpp).

PolicyOptions random_policy(Random& random);
void add_policy(std::vector<std::string>& options, const PolicyOptions& policy);
Command random_set_tube(Random& random);
Command random_stats_group(Random& random);
Command random_fail(queue::JobId id, Random& random);
Command touch_job(queue::JobId id);
// A client has one name at most, which its number makes.
std::string name_of(ClientNumber client);
Command name_client(ClientNumber client);

// --- The jobs of a tube (talker_lists.cpp).

// Now and then it is the page that follows on the last one; the same of a change of many jobs.
Command random_list(const Model& model, Random& random, queue::Now now);
Command random_list_groups(Random& random);
Command random_due_counts(Random& random);
Command random_bulk(const Model& model, Random& random, queue::Now now);

// --- Schedules (talker_schedules.cpp).

Command random_schedule_command(Random& random, queue::Now now);

}  // namespace carillon::simulator
