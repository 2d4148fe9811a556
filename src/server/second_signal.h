// The second SIGTERM or SIGINT, which ends the process at once: also while the event loop, which
// has the first one, stalls in a write to a slow disk.
//
//   boost::asio::signal_set signals(io, SIGTERM, SIGINT);   // gets the first one
//   end_at_second_signal();
#pragma once

namespace carillon::server {

// Stands in front of the handlers of SIGTERM and SIGINT, which get the first of these signals from
// now on. REQUIRES: each has a handler. Not thread-safe.
void end_at_second_signal();

// Another signal has stopped the server: the next SIGTERM or SIGINT counts as the second one.
void count_as_first_signal();

}  // namespace carillon::server
