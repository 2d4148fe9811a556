// Logs when somebody has set the wall clock by a second or more. The event loop asks it once a
// turn.
#pragma once

#include <cstdint>

#include "carillon/queue/engine.h"

namespace carillon::server {

class ClockSteps {
 public:
  // To be called once a turn. Cheap.
  void observe(const queue::Engine& engine);

 private:
  std::int64_t logged_ = 0;  // Engine::clock_moved() at the last log line
};

}  // namespace carillon::server
