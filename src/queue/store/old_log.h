// look_at_old_log(): looks at the log of RocksDB's own that versions before 0.1.0 used, before
// RocksDB replays it to open their data directories.
//
//   block    := fragment* zeros, 32 KiB
//   fragment := crc32c:u32 size:u16 type:u8 bytes
//
// The zeros were written ahead, and fill the log up to its end. RocksDB refuses a fragment whose
// checksum is wrong (state_options.cpp). But it passes over zeros with fragments behind them, and a
// fragment of some types, which one flipped bit can make, ends the log for it. Carillon never wrote
// either.
#pragma once

#include <cstdint>
#include <string>

namespace carillon::queue {

enum class OldLog : std::uint8_t {
  kNone,     // no version before 0.1.0 used the directory since it was made or brought to this one
  kUnsound,  // has what Carillon did not write, and RocksDB would pass over
  kSound,    // as far as RocksDB does not tell
};

// Reads all logs of RocksDB's in the directory. Throws StoreError if one cannot be read.
OldLog look_at_old_log(const std::string& directory);

}  // namespace carillon::queue
