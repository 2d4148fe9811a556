// Counts of jobs as JSON: {"ready":3,"delayed":17,"reserved":1,"buried":0,"total":400}.
#pragma once

#include <boost/json/object.hpp>

#include "carillon/queue/engine_stats.h"

namespace carillon::server::http {

inline boost::json::object json_of(const queue::JobCounts& jobs) {
  return {{"ready", jobs.ready},   {"delayed", jobs.delayed}, {"reserved", jobs.reserved},
          {"buried", jobs.buried}, {"put", jobs.total},       {"in_memory", jobs.loaded}};
}

}  // namespace carillon::server::http
