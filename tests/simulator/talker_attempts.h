// What a simulated client says about attempts: policies, fail-job, touch-job, patchTube
// and name-client, with random options.
//
//   std::vector<std::string> options;
//   const PolicyOptions policy = random_policy(random);
//   add_policy(options, policy);   // max-attempts=2 and so on
#pragma once

#include <string>
#include <vector>

#include "simulator/commands.h"
#include "simulator/disk.h"
#include "simulator/model.h"

namespace carillon::simulator {

PolicyOptions random_policy(Random& random);
void add_policy(std::vector<std::string>& options, const PolicyOptions& policy);
Command random_set_tube(Random& random);
Command random_stats_group(Random& random);
// For the job with the id.
Command random_fail(queue::JobId id, Random& random);
Command touch_job(queue::JobId id);
// A client has one name at most, which its number makes.
std::string name_of(ClientNumber client);
Command name_client(ClientNumber client);

}  // namespace carillon::simulator
