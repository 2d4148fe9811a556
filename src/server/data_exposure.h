// Checks which users may read the data directory.
#pragma once

#include <string>

namespace carillon::server {

// Returns why users other than the owner may read the jobs in the directory; empty if they may not,
// or if the system cannot tell.
std::string data_exposure(const std::string& directory);

}  // namespace carillon::server
