// Which writes a power loss may take back, while a program writes to its log.
//
//   SharedMemory<Disk> disk(path);     // in the writer, which will die, and in the test
//   track_writes_in(&*disk);           // in the writer: from now on
//   ...
//   disk->lose_power(made, copy, random);       // in the test, when the writer is dead
//
// A process that is killed loses nothing that it wrote: the page cache has it, and everybody who
// reads the files sees it. A power loss may take back what was not synced, in any order and by
// sectors. So this program has its own `pwrite` and `fdatasync`. They call the system, and keep in
// the Disk what each write has replaced until it is durable: with O_DSYNC when it returns, else
// when a sync of the file does.
//
// Not simulated: the loss of RocksDB's files, which it writes in other ways, and of the names of
// files. Writes of zeros alone are passed over: they fill a new file.
//
// Slow disks are simulated: each sync, and each durable write, takes a random time more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

namespace carillon::queue {

struct Disk {
  static constexpr std::size_t kWrites = 1 << 14;
  static constexpr std::size_t kBytes = 64 << 20;

  // What a write has in `bytes`: first the old content, then the new one.
  struct Write {
    std::uint64_t inode = 0;
    std::uint64_t at = 0;
    std::uint64_t size = 0;
    std::uint64_t bytes = 0;
    std::atomic<bool> durable = false;
  };

  // Leaves the bytes as they are: most are never used.
  Disk() {}

  // The numbers of the oldest write that may not be durable, and of the next one. A write n is in
  // writes[n % kWrites]. They are atomic, as the writer may die at any instruction.
  std::atomic<std::uint64_t> first = 0;
  std::atomic<std::uint64_t> next = 0;
  // Each sync and each durable write takes up to this many microseconds more than the system's own.
  std::atomic<unsigned> takes = 0;

  std::array<Write, kWrites> writes;
  alignas(4'096) std::array<char, kBytes> bytes;

  // Makes of the files in `copy`, which are those of `made`, what a power loss may leave. Returns
  // in words what that was.
  std::string lose_power(const std::filesystem::path& made, const std::filesystem::path& copy,
                         std::mt19937_64& random) const;
};

// From now on `disk` tells what this process writes and syncs. REQUIRES: the process has one
// thread.
void track_writes_in(Disk* disk);

}  // namespace carillon::queue
