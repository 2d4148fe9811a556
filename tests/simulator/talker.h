// What a simulated client has to say: a random command of those that its role likes.
//
//   Talker talker(Role::kWorker);
//   Command command = talker.next(model, client, random, now);
#pragma once

#include <cstdint>
#include <string>

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/model.h"

namespace carillon::simulator {

enum class Role : std::uint8_t {
  kProducer,
  kWorker,
  kOperator,  // kicks, pauses, peeks, looks at statistics
  kAnybody,
  kVandal,  // sends garbage, and what is refused
};
inline constexpr std::uint64_t kRoles = 5;

class Talker {
 public:
  explicit Talker(Role role) : role_(role) {}

  Command next(const Model& model, ClientNumber client, Random& random, queue::Now now) const;

 private:
  Role role_;
};

// The largest body that the simulated server takes.
inline constexpr std::uint32_t kMaxJobSize = 20'000;
// With more jobs, clients rather delete than put.
inline constexpr std::size_t kManyJobs = 150;

}  // namespace carillon::simulator
