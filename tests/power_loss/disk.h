// Which bytes are on the disk for sure while a program writes: what a power loss at this moment
// must leave.
//
//   SharedMemory<Disk> disk(path);     // in the writer, which is to die, and in the test
//   track_writes_in(&*disk);           // in the writer: from now on
//
// A process that is killed loses nothing that it wrote: the page cache has it, and everybody who
// reads the files sees it. A power loss loses what was not synced. So this program has its own
// `pwrite` and `fdatasync`. They call the system, and write into the Disk how far each file was
// synced, and which write past the page cache is under way. From that, and from the files of a
// killed process, power_loss_test.cpp makes files as the power loss would have left them.
//
// Not simulated: the loss of files, or of their names, that RocksDB syncs in other ways (sorted
// files, its manifest).
//
// Slow disks are simulated: each sync, and each write past the page cache, takes a random time
// more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace carillon::queue {

struct Disk {
  static constexpr std::size_t kFiles = 4'096;
  static constexpr std::size_t kLargestWrite = 2 << 20;

  // A file that was written to through the page cache. All members are atomic, as the writer may
  // die at any instruction.
  struct File {
    std::atomic<std::uint64_t> inode = 0;
    // Bytes from the file's start, without the zeros written ahead.
    std::atomic<std::uint64_t> written = 0;
    std::atomic<std::uint64_t> synced = 0;
  };
  std::array<File, kFiles> files;
  std::atomic<std::size_t> files_count = 0;

  // The write past the page cache that is under way, at offset `at`: each of its sectors may have
  // the old bytes or the new ones.
  std::atomic<bool> under_way = false;
  std::uint64_t inode = 0;  // of the file
  std::uint64_t at = 0;
  std::size_t size = 0;
  alignas(4'096) std::array<char, kLargestWrite> before;
  std::array<char, kLargestWrite> after;

  // How many there were; `writes` counts those past the page cache.
  std::atomic<std::uint64_t> writes = 0;
  std::atomic<std::uint64_t> syncs = 0;

  // Each takes up to this many microseconds more than the system's own.
  std::atomic<unsigned> write_takes = 0;
  std::atomic<unsigned> sync_takes = 0;

  // Returns how many bytes of the file are on the disk for sure; UINT64_MAX if it was not written
  // to.
  std::uint64_t synced(const std::string& path) const;
};

// From now on `disk` tells what this process writes and syncs. REQUIRES: the process has one
// thread.
void track_writes_in(Disk* disk);

}  // namespace carillon::queue
