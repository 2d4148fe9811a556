// A disk in memory that loses power, fills up and fails, under the same system calls as a real one.
//
//   Disk& disk = Disk::mount();           // paths below /simulated are on it from now on
//   ...                                   // any code writes and syncs files there
//   disk.stop_after(7);                   // the seventh write from now on is cut short, and is the
//   ...                                   // last one: all later calls that change anything fail
//   disk.lose_power(random);              // what was not synced is kept, lost or torn at random
//
// system_calls.cpp replaces the functions of the C library for paths and descriptors of the disk,
// and calls the methods below. So the log and RocksDB run on it as they are, RocksDB's own file
// layer included.
//
// What a power loss leaves
// - *Bytes.* A page of 4 KiB that was overwritten and not synced is as it was before, or as it was
//   written, or each of its sectors of 512 bytes is one or the other. Each page has a fate of its
//   own. If bytes were added to a file, only the first few of them may be there, as ext4 and XFS
//   have it: a size grows only over bytes that are on the disk. (POSIX would allow anything there;
//   RocksDB refuses a MANIFEST with holes.) A write with O_DSYNC is durable when it returns.
// - *Names.* That a file was made, renamed, linked or deleted is durable after an fsync of its
//   directory, and not before. A power loss keeps the first few of the changes of a directory, as
//   ext4 and XFS do. (POSIX would allow any of them; RocksDB's CURRENT relies on the order.) A sync
//   of a new file does not make its name durable: ext4 does that, and no code may rely on it. A
//   rename is never kept by halves.
// - *Failed syncs.* What a failed sync has not written is never written by a later one that
//   succeeds, as on Linux. Reads find it in the page cache until the process has died and power was
//   lost, but for those past the page cache (O_DIRECT).
// The death of the process alone loses nothing that was written.
//
// Simulated space: each page of a file takes 4 KiB; a write that needs more than there is fails
// with ENOSPC. Not simulated: permissions, links to other places (symlinks), times of files.
//
// Thread safety: none; only one thread of a simulation runs at a time (threads.h).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::simulator {

using Random = std::mt19937_64;

class Disk {
 public:
  static constexpr std::string_view kRoot = "/simulated";
  // Descriptors of the disk begin here: no process has as many others.
  static constexpr int kFirstDescriptor = 1'000'000;
  static constexpr std::size_t kPage = 4'096;
  static constexpr std::size_t kSector = 512;

  // How often calls fail: one call in this many; 0: no call fails.
  struct Faults {
    std::uint32_t writes = 0;  // and all else that changes something, but syncs
    std::uint32_t syncs = 0;
    std::uint32_t reads = 0;
    bool any() const { return writes + syncs + reads > 0; }
  };

  // The one disk of this process, empty and without limits. Ends the one before.
  static Disk& mount();
  // Returns nullptr if no disk is mounted.
  static Disk* mounted();
  // Returns true if the path belongs to the disk.
  static bool has(const char* path);
  static bool has(int fd) { return fd >= kFirstDescriptor; }

  Disk();
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // --- What a test does to it.

  // The n-th call from now on that changes anything is cut short, and nothing changes after it.
  void stop_after(std::uint64_t changes) { changes_left_ = changes; }
  // Nothing changes from now on.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // The process has died. Its descriptors are closed; the next one finds what was written. The disk
  // works, and has no faults.
  void end_process();
  // The same, and what was not synced is kept, lost or torn.
  void lose_power(Random& random);

  void set_faults(const Faults& faults, std::uint64_t seed);
  // How many calls have failed because of the faults, or for lack of space.
  std::uint64_t failed_calls() const { return failed_; }
  // Bytes that the files may take.
  void set_capacity(std::uint64_t bytes) { capacity_pages_ = bytes / kPage; }
  std::uint64_t free_bytes() const;
  std::uint64_t used_bytes() const { return used_pages_ * kPage; }
  // How many calls so far have read, how many have changed something, and how many were syncs.
  std::uint64_t reads() const { return reads_; }
  std::uint64_t changes() const { return changes_; }
  std::uint64_t syncs() const { return syncs_; }

  // --- The system calls. Each returns its result, or an errno as a negative number.

  int open(int at, const char* path, int flags);
  int close(int fd);
  ssize_t read(int fd, char* to, std::size_t size);
  ssize_t pread(int fd, char* to, std::size_t size, off_t at);
  ssize_t write(int fd, const char* bytes, std::size_t size);
  ssize_t pwrite(int fd, const char* bytes, std::size_t size, off_t at);
  off_t seek(int fd, off_t by, int from);
  int sync(int fd);
  int resize(int fd, off_t size);
  int allocate(int fd, off_t size);  // makes the file at least this long
  int get_flags(int fd);
  int set_flags(int fd, int flags);
  int lock(int fd, int operation);
  int stat(int fd, struct stat& to);
  int stat(int at, const char* path, struct stat& to);
  int make_directory(const char* path);
  int link(const char* from, const char* to);
  int rename(int from_at, const char* from, int to_at, const char* to);
  int unlink(int at, const char* path);
  int remove_directory(int at, const char* path);

  struct Entry {
    std::string name;
    std::uint64_t inode = 0;
    bool directory = false;
  };
  // What a directory has, without "." and "..", in the order of the names.
  std::vector<Entry> list(int fd);

 private:
  using Page = std::array<char, kPage>;
  struct File;
  using FilePointer = std::shared_ptr<File>;
  using Names = std::map<std::string, FilePointer, std::less<>>;
  struct Change;
  struct Descriptor;
  struct Place;

  Place find(int at, const char* path) const;
  Descriptor* descriptor(int fd);
  int add_descriptor(const FilePointer& file, int flags);
  bool fails(std::uint32_t one_in, bool is_change = true);
  bool is_last();
  bool take_pages(File& file, std::size_t size);
  void set_size(File& file, std::size_t size);
  void resize(File& file, std::size_t size);
  void save_page(File& file, std::size_t page);
  void put(File& file, const char* bytes, std::size_t size, std::size_t at, bool durable);
  static void put_durable_pages(const File& file, char* to, std::size_t size, std::size_t from);
  void change_names(File& directory, Change change);
  void lose_names(File& directory, Random& random);
  void lose_bytes(File& file, Random& random);
  void lose_below(File& directory, Random& random, std::set<const File*>& seen);

  FilePointer root_;
  std::map<int, std::unique_ptr<Descriptor>> descriptors_;
  int next_descriptor_ = kFirstDescriptor;
  std::uint64_t next_inode_ = 2;
  std::uint64_t capacity_pages_ = UINT64_MAX;
  std::uint64_t used_pages_ = 0;
  bool stopped_ = false;
  std::uint64_t changes_left_ = 0;  // 0: without end
  std::uint64_t reads_ = 0;
  std::uint64_t changes_ = 0;
  std::uint64_t syncs_ = 0;
  std::uint64_t failed_ = 0;
  Faults faults_;
  Random fault_random_;
};

}  // namespace carillon::simulator
