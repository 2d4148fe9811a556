// Preconditions of things without entity tags (preconditions.h).
#include "server/api/preconditions.h"

#include <fmt/format.h>

#include "server/api/problem.h"

namespace carillon::server {

void require_preconditions(const Request& request, bool is_there, std::string_view what) {
  const std::string_view wanted = request.header("if-match");
  if (wanted == "*" && !is_there) throw Problem(kChanged, fmt::format("{} is not there", what));
  if (!wanted.empty() && wanted != "*")
    throw Problem(kChanged, fmt::format("{} has no tag, and so not {}", what, wanted));
  if (request.header("if-none-match") == "*" && is_there)
    throw Problem(kChanged, fmt::format("{} is there already", what));
}

}  // namespace carillon::server
