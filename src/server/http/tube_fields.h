// Tubes and groups as the API shows them, both ways: their counts, and what holds for them.
//
//   FieldFaults faults;
//   queue::TubeSettings settings = engine.tube_settings("mail");
//   read_settings(object, faults, settings);      // {"limits":{"max_running":10},"draining":true}
//   faults.throw_if_any();
//   engine.set_tube(now, "mail", settings);
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "carillon/queue/engine_stats.h"
#include "server/http/fields.h"

namespace carillon::server::http {

boost::json::object json_of(const queue::TubeStats& stats);
boost::json::object json_of(std::string_view tube, std::string_view group,
                            const queue::GroupStats& stats);

// Changes what the object names, and leaves the rest; null takes a limit or policy away (RFC 7396).
// Faults are noted.
void read_settings(const boost::json::object& object, FieldFaults& faults,
                   queue::TubeSettings& settings);
void read_settings(const boost::json::object& object, FieldFaults& faults,
                   queue::GroupSettings& settings);

}  // namespace carillon::server::http
