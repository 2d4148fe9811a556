// Reads whole files of a state, and verifies every checksum in them.
//
//   if (const std::string why = verdict_on(file).fault; !why.empty()) ...
//
// Such reads go to the disk, past the page cache (FreshRead), and what fails is read once more.
// They may be slowed down or ended (PacedRead, no_wait_files.h). Memory: 2 MiB.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "queue/store/state/written_files.h"

namespace carillon::queue {

struct StateFile {
  std::string path;
  std::uint64_t bytes = 0;
  bool has_blobs = false;               // large bodies; else it is a table
  std::optional<FileSum> written = {};  // nothing: not known
};

struct FileVerdict {
  // The fault in one line, without the path. Empty if every checksum is right, if the file is gone,
  // or if the reading was ended.
  std::string fault;
  bool unreadable = false;  // the fault is an error of the system, and says nothing about the bytes
  bool is_foreign = false;  // the file is whole, and not the one that was written
};

FileVerdict verdict_on(const StateFile& file);

}  // namespace carillon::queue
