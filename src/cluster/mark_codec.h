// How a Mark is kept beside the state (queue::Log::mark()).
//
//   mark := "CARM" version:u8 log:16 epoch:u64 owner:16 epoch_began:u64 next:u64 chain:32
//           position:u64 utc:u64
//
// Numbers are little-endian.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/role.h"

namespace carillon::cluster {

std::string encode_mark(const Mark& mark);

// Returns nothing if the bytes are no mark.
std::optional<Mark> decode_mark(std::string_view bytes);

}  // namespace carillon::cluster
