// What a run of the download centre does, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace carillon::bench {

struct Plan {
  std::string server = "127.0.0.1:11300";  // for PostgreSQL: a connection string

  double rate = 500;   // puts per second
  double warm_up = 4;  // seconds, not measured
  double seconds = 6;
  std::size_t drain = 0;  // if not 0: instead, that many downloads of no length, all due

  std::uint64_t most_delay_ms = 2'000;  // a download is due evenly between now and then
  double least_ms = 500;                // a download runs evenly between this
  double most_ms = 1'500;               // and this
  std::size_t sites = 10;               // a fifth of the downloads come from the first
  std::size_t at_once = 105;            // downloads of a site
  std::uint64_t comes_back_ms = 250;
  bool hold = false;  // wait for a line of input after {"event": "end"}, and before a drain

  std::size_t producers = 8;    // connections
  std::size_t consumers = 700;  // connections (Carillon); each has one download
  std::uint64_t poll_ms = 100;  // (PostgreSQL)
  bool notify = false;          // (PostgreSQL) sleep until the next due time; producers wake
};

}  // namespace carillon::bench
