// A JSON value as its text. Boost.JSON writes 0.025 as 2.5E-2 and 5.0 as 5E0, which is right, and
// which people and simple readers do not expect.
//
//   json_text({{"late", 0.025}, {"rate", 5.0}})    // {"late":0.025,"rate":5}
//
// Thread safety: pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace carillon::server {

// Returns the text without spaces. A number that is no whole one has as few digits as tell it from
// all others. REQUIRES: numbers are finite, as those of JSON are.
std::string json_text(const boost::json::value& value);

}  // namespace carillon::server
