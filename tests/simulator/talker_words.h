// What the commands of simulated clients are made of: random tubes, priorities, times and bodies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "carillon/queue/job.h"
#include "simulator/disk.h"
#include "simulator/model.h"

namespace carillon::simulator {

// The priority of a job whose command names none.
inline constexpr queue::Priority kUsualPriority = 65'536;

// From 0 to `end` - 1.
inline std::uint64_t below(Random& random, std::uint64_t end) {
  return random() % end;
}

template <std::size_t size>
std::uint64_t one_of(Random& random, const std::array<std::uint64_t, size>& numbers) {
  return numbers[below(random, size)];
}

inline std::string number(std::uint64_t of) {
  return std::to_string(of);
}

std::string random_tube(Random& random);
std::string random_group(Random& random);
std::string random_attributes(Random& random);
queue::Priority random_priority(Random& random);
// In ms, whole seconds.
queue::Millis random_delay(Random& random);
std::string random_body(Random& random);
// Has more than queue::kBodyPiece bytes. No two pieces of it are the same.
std::string random_large_body(Random& random);
// As an option has it.
std::string duration(queue::Millis ms);
// The options in any order, and the end of the line.
std::string line_of(std::vector<std::string> options, Random& random);
// An id that is, or was, or will be that of a job.
queue::JobId some_id(const Model& model, Random& random);

}  // namespace carillon::simulator
