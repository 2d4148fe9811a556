// What a simulated client has to say: a random command of those that its role likes.
//
//   Talker talker(Role::kWorker, 65'535);     // for a server that takes bodies up to this size
//   Command command = talker.next(model, client, random, now);
#pragma once

#include <cstdint>
#include <string>

#include "carillon/queue/now.h"
#include "carillon/queue/store.h"
#include "simulator/commands.h"
#include "simulator/model.h"

namespace carillon::simulator {

enum class Role : std::uint8_t {
  kProducer,
  kWorker,
  kOperator,  // by HTTP: sets, lists, changes many jobs, has schedules
  kAnybody,
  kVandal,  // sends garbage, and what is refused
};
inline constexpr std::uint64_t kRoles = 5;

class Talker {
 public:
  // If the server takes large bodies (queue::kBodyPiece), some are put: rarely, and few at a time.
  Talker(Role role, std::uint32_t max_job_size) : role_(role), max_job_size_(max_job_size) {}

  Command next(const Model& model, ClientNumber client, Random& random, queue::Now now) const;

 private:
  Command produce(const Model& model, Random& random, queue::Now now) const;
  Command damage(const Model& model, Random& random) const;
  bool puts_large_body(const Model& model, Random& random, std::uint64_t rarely) const;

  Role role_;
  std::uint32_t max_job_size_;
};

// The largest body that the simulated server takes; and if it takes large ones.
inline constexpr std::uint32_t kMaxJobSize = 20'000;
inline constexpr std::uint32_t kMaxLargeSize = 3 * queue::kBodyPiece;
// With more jobs, clients rather delete than put.
inline constexpr std::size_t kManyJobs = 150;

}  // namespace carillon::simulator
