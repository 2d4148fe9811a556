// The YAML that `stats`, `stats-job`, `stats-tube` and the `list-…` commands answer with:
// beanstalkd's fields, in its order.
//
// After the last of them come Carillon's own, so that a client which reads all finds more, and one
// which reads beanstalkd's finds them.
#pragma once

#include <string>
#include <vector>

#include "carillon/queue/engine.h"
#include "server/beanstalk/service.h"

namespace carillon::server::beanstalk {

std::string server_stats_yaml(Service& service);
std::string tube_stats_yaml(const queue::TubeStats& tube);
std::string job_stats_yaml(const queue::JobStats& job);
std::string list_yaml(const std::vector<std::string>& items);

}  // namespace carillon::server::beanstalk
