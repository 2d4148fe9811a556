// All operations of the API, one row for each (operation.h).
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string_view>

#include "server/api/operation.h"

namespace carillon::server {

// Returns the rows in the order of openapi.json.
std::span<const Operation* const> operations();
// Returns the row: of "kickTube". REQUIRES: there is one.
const Operation& operation_named(std::string_view name);

// Writes the operations into openapi.json (OpenAPI 3.1), from their rows.
//
//   boost::json::object document = ...;        // with "paths" and "components"
//   describe(operations(), document);          // adds each path, and the schemas that it needs
void describe(std::span<const Operation* const> operations, boost::json::object& document);

}  // namespace carillon::server
