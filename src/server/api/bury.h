// Burying one job that nobody has reserved.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "carillon/queue/job.h"
#include "server/api/field.h"

namespace carillon::server {

struct BuryJob {
  std::uint64_t id = 0;
  std::optional<queue::Priority> priority;
};
inline constexpr std::array kBuryJobFields = {
    field<&BuryJob::id>("id", "The job.", {.least = 1, .most = queue::kLastId}),
    field<&BuryJob::priority>("priority", "Its new priority; without it the job keeps its own.")};
template <>
inline constexpr Shape kShape<BuryJob> = {.name = "Bury", .fields = kBuryJobFields};

}  // namespace carillon::server
