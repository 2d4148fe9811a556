// Checkpoints: the files of all jobs at one moment, which a backup copies (net/checkpoint_lease.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "server/api/operation.h"

namespace carillon::server {

struct Checkpoint {
  std::uint64_t number = 0;
  std::string path;
};
template <>
inline constexpr auto kFields<Checkpoint> =
    fields(field<&Checkpoint::number>("The last change that is in it."),
           field<&Checkpoint::path>("Its directory, on the server's machine."));

}  // namespace carillon::server
