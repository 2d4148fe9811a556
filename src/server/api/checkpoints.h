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
inline constexpr std::array kCheckpointFields = {
    field<&Checkpoint::number>("number", "The last change that is in it."),
    field<&Checkpoint::path>("path", "Its directory, on the server's machine.")};
template <>
inline constexpr Shape kShape<Checkpoint> = {.name = "Checkpoint", .fields = kCheckpointFields};

}  // namespace carillon::server
