// What a simulated client says about schedules. There are few of them, so that they are changed
// often.
//
//   Command command = random_schedule_command(random, now);
#pragma once

#include "carillon/queue/now.h"
#include "simulator/commands.h"
#include "simulator/disk.h"

namespace carillon::simulator {

Command random_schedule_command(Random& random, queue::Now now);

}  // namespace carillon::simulator
