// Reads whole files of a state, and verifies every checksum in them.
//
//   if (const std::string why = damage_in(file); !why.empty()) ...
//
// Such reads go to the disk, past the page cache (FreshRead), and what fails is read once more.
// They may be slowed down or ended (PacedRead, no_wait_files.h). Memory: 2 MiB.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <string>

namespace carillon::queue {

struct StateFile {
  std::string path;
  std::uint64_t bytes = 0;
  bool has_blobs = false;  // large bodies; else it is a table
};

// Returns why the file is damaged, in one line without its path; or an empty string, also if the
// file is gone or the reading was ended. A file that cannot be read counts as damaged.
std::string damage_in(const StateFile& file);

}  // namespace carillon::queue
