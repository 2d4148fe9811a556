// Collects the rows of all operations (operations.h).
#include "server/api/operations.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace carillon::server {

// The tables of rows, each beside its functions.
std::span<const Operation> bulk_operations();
std::span<const Operation> endpoint_operations();
std::span<const Operation> job_operations();
std::span<const Operation> job_page_operations();
std::span<const Operation> lease_operations();
std::span<const Operation> put_operations();
std::span<const Operation> report_operations();
std::span<const Operation> schedule_operations();
std::span<const Operation> status_operations();
std::span<const Operation> tube_operations();

std::span<const Operation* const> operations() {
  static const std::vector<const Operation*> all = [] {
    std::vector<const Operation*> made;
    for (const auto& rows :
         {put_operations(), job_operations(), job_page_operations(), lease_operations(),
          bulk_operations(), tube_operations(), report_operations(), schedule_operations(),
          endpoint_operations(), status_operations()})
      for (const Operation& row : rows) made.push_back(&row);
    return made;
  }();
  return all;
}

const Operation& operation_named(std::string_view name) {
  const auto all = operations();
  const auto found = std::find_if(all.begin(), all.end(), [name](const Operation* operation) {
    return operation->name == name;
  });
  if (found == all.end()) throw std::logic_error("there is no operation of this name");
  return **found;
}

}  // namespace carillon::server
