// Settings of PostgreSQL by which a commit that was confirmed can be lost.
//
//   for (const std::string& line : weaknesses(connection, {"fsync"}, deadline)) …
//   // "synchronous_standby_names = '': no commit waits for a standby, so …; --allow-weak-cluster
//   //  synchronous_standby_names allows it"
//
// A node refuses to start with one, unless its operator names the setting. They are those of the
// session: a role or a database may have its own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cluster/postgres/connection.h"

namespace carillon::cluster::postgres {

// The settings that can be allowed.
const std::vector<std::string>& weak_settings();

// Returns a line for each weak setting that is not allowed: the setting, its value, what is lost by
// it, and how to allow it. Throws LogUnavailable (carillon/queue/store.h) if the server cannot be
// asked now. REQUIRES: the connection is open.
std::vector<std::string> weaknesses(Connection& connection, const std::set<std::string>& allowed,
                                    Deadline deadline);

}  // namespace carillon::cluster::postgres
