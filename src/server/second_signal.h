// The second SIGTERM or SIGINT, which ends the process at once: also while the event loop, which
// has the first one, stalls in a write to a slow disk.
//
//   boost::asio::signal_set signals(io, SIGTERM, SIGINT);   // gets the first one
//   end_at_second_signal();
#pragma once

namespace carillon::server {

// Sits in front of the handlers that SIGTERM and SIGINT have, which get the first of these signals
// from now on. REQUIRES: each has one. Not thread-safe.
void end_at_second_signal();

// The next SIGTERM or SIGINT is the second one: another signal has stopped the server.
void count_as_first_signal();

}  // namespace carillon::server
