// Makes the records of a log readable again if a segment has lost its header.
//
//   std::vector<std::string> damages;
//   const base::Directory directory(mend_log("carillon-data", "work", identity, damages));
//   LogReader reader(directory, ...);
//
// The checksum of each record covers the life and the serial number that the header says
// (log_segment.h). They follow from the segments before and behind it, and those of the last one
// from newest.data. So these values are tried. If they are right, a record is found, and the rest
// of the header follows from the record. Nothing else is taken for a record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carillon::queue {

// Returns the directory to read the log from: `path` itself if no header is damaged; else `to`,
// which is made then, with links to the files that are whole. Adds a line for each damaged header
// that was mended; a reader reports the others. Throws StoreError.
std::string mend_log(const std::string& path, const std::string& to, std::uint64_t identity,
                     std::vector<std::string>& damages);

}  // namespace carillon::queue
