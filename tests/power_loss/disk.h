// What the disk has for sure while a program writes to it: what a power loss at this moment must
// leave.
//
//   SharedMemory<Disk> disk(path);     // in the program that is to die, and in the one that looks at what it left
//   note_in(&*disk);                   // from now on, in the former
//
// A process that is killed loses nothing that it wrote: the page cache has it, and whoever reads
// the files sees it. A power loss loses what was not synced. So this program has its own `pwrite`
// and `fdatasync`: they pass on to the system, and note how far each file was synced, and which
// write past the page cache is under way. From that, and the files of a killed process,
// power_loss_test.cpp makes files as the power loss would have left them.
//
// Not simulated: that files, or their names, are lost which RocksDB syncs otherwise (sorted files,
// its manifest).
//
// The slowness of a disk is part of it: each sync, and each write past the page cache, takes a
// random time more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace carillon::queue {

struct Disk {
  static constexpr std::size_t kFiles = 4'096;
  static constexpr std::size_t kLargestWrite = 80 << 10;

  // A file that was written to through the page cache. All is atomic, as the writer may die at any
  // instruction.
  struct File {
    std::atomic<std::uint64_t> inode = 0;
    std::atomic<std::uint64_t> written = 0;  // bytes from its start, without zeros written ahead
    std::atomic<std::uint64_t> synced = 0;
  };
  std::array<File, kFiles> files;
  std::atomic<std::size_t> files_count = 0;

  // The write past the page cache that is under way: each sector of it may be as before, or as it
  // is to be.
  std::atomic<bool> under_way = false;
  std::uint64_t at = 0;
  std::size_t size = 0;
  alignas(4'096) std::array<char, kLargestWrite> before;
  std::array<char, kLargestWrite> after;

  std::atomic<std::uint64_t> writes = 0;  // past the page cache
  std::atomic<std::uint64_t> syncs = 0;

  // Microseconds at the most that they take more than the system's.
  std::atomic<unsigned> write_takes = 0;
  std::atomic<unsigned> sync_takes = 0;

  // Bytes of the file that are on the disk for sure; all, if it was not written to.
  std::uint64_t synced(const std::string& path) const;
};

// From now on what this process writes is noted there. REQUIRES: there is one thread.
void note_in(Disk* disk);

}  // namespace carillon::queue
