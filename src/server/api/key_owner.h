// The words by which both protocols tell whose key a put has met: "dead".
//
// Thread safety: it is pure.
#pragma once

#include <string_view>

#include "carillon/queue/commands.h"

namespace carillon::server {

// Returns the word for it; of kNone an empty one.
std::string_view name_of(queue::KeyOwner owner);

}  // namespace carillon::server
