// Logs what happens to schedules and nobody asked for: each occurrence that was skipped, and why.
//
//   log.observe(engine, now_ns);     // once a turn
//
// Thread safety: none.
#pragma once

#include <cstdint>

#include "carillon/queue/engine.h"

namespace carillon::server {

class ScheduleLog {
 public:
  // Logs at most 20 lines a second, and how many more there were.
  void observe(queue::Engine& engine, std::uint64_t mono_ns);

 private:
  std::uint64_t second_ = 0;
  unsigned lines_ = 0;
  std::uint64_t held_back_ = 0;
};

}  // namespace carillon::server
