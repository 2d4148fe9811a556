// How much of a write-ahead log may be replayed after a crash, and whether what is missing had been
// promised to anyone.
//
// A log that was being written when the machine died ends in an unreadable place: a record half on
// the disk, a page that never got there, the zeros of space taken ahead. None of it had been
// synced, so nobody was told of it, and it is to be left out. A log with an unreadable place among
// records that *had* been synced is damaged, and leaving those out would silently take back what
// was acknowledged. By the bytes alone the two cannot be told apart. So each record says how far
// the log was known to be durable when the record was written (its *mark*), and the rule is:
//
//   The log is replayed up to the first record that is unreadable or out of sequence. If a record
//   beyond that place can be read, in this log or in a later one, and its mark covers the missing
//   one, the log is damaged. Else the rest was never synced.
//
// What it cannot see: damage to the very last synced records of a log to which nothing was added
// after their sync. A clean close adds a record, so this is only so after a crash.
//
// The format read here is RocksDB's (and LevelDB's: see doc/log_format.md there): blocks of 32 KiB,
// in them
//   fragment := crc32c:u32 length:u16 type:u8 (1 whole, 2 first, 3 middle, 4 last) bytes
// and a record, put together from its fragments, is a write batch: sequence:u64 count:u32, then its
// entries. The first entry of ours is the mark, as an entry of log data: 0x03 size:u8 version:u8
// durable:u64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue/store/record_codec.h"

namespace carillon::queue {

// The log data of a record that is written when every record of a sequence number up to `durable`
// has been synced.
Bytes<9> durability_mark(std::uint64_t durable);

struct CheckedLog {
  std::string path;
  std::uint64_t readable = 0;  // bytes from its start that may be replayed
  std::uint64_t left_out = 0;  // bytes beyond, up to the last that is not zero
  // It ends where the readable bytes end, without zeros: it was synced when its successor was
  // there.
  bool complete = false;
  bool cut = false;  // it is the first in which something is missing where the readable bytes end
};

struct LogCheck {
  std::vector<CheckedLog> logs;
  std::string damage;  // empty: the logs may be replayed; else what is wrong with them
};

// Checks the logs at `paths`, oldest first. Throws StoreError when one cannot be read. Takes about
// 1 ms per 2 MB.
LogCheck check_logs(const std::vector<std::string>& paths);

}  // namespace carillon::queue
