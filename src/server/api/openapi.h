// Writes the operations into openapi.json, from their rows.
//
//   boost::json::object document = ...;        // with "paths" and "components"
//   describe(operations(), document);          // adds each path, and the schemas that it needs
//
// Source: OpenAPI 3.1. Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <span>

#include "server/api/operation.h"

namespace carillon::server {

void describe(std::span<const Operation* const> operations, boost::json::object& document);

}  // namespace carillon::server
