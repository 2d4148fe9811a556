// All operations of the API, one row for each (operation.h).
#pragma once

#include <span>
#include <string_view>

#include "server/api/operation.h"

namespace carillon::server {

// Returns the rows in the order of openapi.json.
std::span<const Operation* const> operations();
// Returns the row: of "kickTube". REQUIRES: there is one.
const Operation& operation_named(std::string_view name);

// Parts of them, each beside its functions.
std::span<const Operation> put_operations();
std::span<const Operation> batch_operations();
std::span<const Operation> job_operations();
std::span<const Operation> job_page_operations();
std::span<const Operation> lease_operations();
std::span<const Operation> bulk_operations();
std::span<const Operation> dead_operations();
std::span<const Operation> endpoint_operations();
std::span<const Operation> schedule_operations();
std::span<const Operation> status_operations();
std::span<const Operation> tube_operations();
std::span<const Operation> wheel_operations();
std::span<const Operation> due_operations();
std::span<const Operation> checkpoint_operations();

}  // namespace carillon::server
