// Starting the threads of a timer service: their names and their signals.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace carillon::detail {

// Starts a thread with that name (cut off at 15 characters). It gets no signals that are for the
// process: those are for the threads of the program. It gets those that a thread causes itself
// (SEGV, BUS, FPE, ILL, TRAP, SYS), so that handlers for crashes work, and PROF, so that profilers
// see it. It keeps timer blocks (block_pool.h). Throws std::system_error.
std::thread start_thread(std::string name, std::function<void()> body);

}  // namespace carillon::detail
