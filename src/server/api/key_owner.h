// The word with which both protocols answer a put whose key another job has: "dead".
//
// Thread safety: pure.
#pragma once

#include <string_view>

#include "carillon/queue/commands.h"

namespace carillon::server {

// Returns an empty text for kNone.
std::string_view name_of(queue::KeyOwner owner);

}  // namespace carillon::server
