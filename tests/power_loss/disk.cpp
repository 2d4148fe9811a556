// The functions through which DiskStore makes data durable. They replace those of the C library.
// RocksDB calls them too, for its other files.

#include "power_loss/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>

namespace carillon::queue {

namespace {

Disk* the_disk = nullptr;
std::mutex files_mutex;

// Returns the entry of the open file `fd`. If the file was never written to: a new entry if `make`
// is true, else nullptr.
Disk::File* file_of(int fd, bool make) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) std::abort();
  Disk& disk = *the_disk;
  const std::lock_guard lock(files_mutex);
  const std::size_t count = disk.files_count;
  Disk::File* const end = disk.files.data() + count;
  Disk::File* const found = std::find_if(
      disk.files.data(), end, [&](const Disk::File& file) { return file.inode == status.st_ino; });
  if (found != end) return found;
  if (!make) return nullptr;
  if (count == Disk::kFiles) std::abort();
  end->inode = status.st_ino;
  disk.files_count = count + 1;
  return end;
}

// Sleeps for a random time of up to this many microseconds.
void take(unsigned microseconds) {
  if (microseconds == 0) return;
  thread_local std::minstd_rand random(std::random_device{}());
  std::this_thread::sleep_for(std::chrono::microseconds(random() % (microseconds + 1)));
}

ssize_t pass_on(int fd, const void* bytes, std::size_t size, off_t at) {
  return ::syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t write_past_the_page_cache(int fd, const void* bytes, std::size_t size, off_t at) {
  Disk& disk = *the_disk;
  if (size > Disk::kLargestWrite) std::abort();
  if (::pread(fd, disk.before.data(), size, at) != static_cast<ssize_t>(size)) std::abort();
  std::memcpy(disk.after.data(), bytes, size);
  struct stat status {};
  if (::fstat(fd, &status) != 0) std::abort();
  disk.inode = status.st_ino;
  disk.at = static_cast<std::uint64_t>(at);
  disk.size = size;
  disk.under_way = true;
  ++disk.writes;
  take(disk.write_takes);
  const ssize_t wrote = pass_on(fd, bytes, size, at);
  take(disk.write_takes);
  disk.under_way = false;
  return wrote;
}

bool blank(const void* bytes, std::size_t size) {
  return std::string_view(static_cast<const char*>(bytes), size).find_first_not_of('\0') ==
         std::string_view::npos;
}

ssize_t write_to_the_page_cache(int fd, const void* bytes, std::size_t size, off_t at) {
  Disk::File& file = *file_of(fd, true);
  // It may be a new file with the inode of a file that is gone.
  if (at == 0) file.written = file.synced = 0;
  const ssize_t wrote = pass_on(fd, bytes, size, at);
  // Zeros do not count: a log is filled with zeros ahead.
  if (wrote > 0 && !blank(bytes, size)) {
    const auto end = static_cast<std::uint64_t>(at + wrote);
    file.written = std::max(file.written.load(), end);  // one thread at a time writes to a log
  }
  return wrote;
}

int sync(int fd) {
  Disk::File* const file = file_of(fd, false);
  const std::uint64_t written = file != nullptr ? file->written.load() : 0;
  const int result = static_cast<int>(::syscall(SYS_fdatasync, fd));
  if (file == nullptr || result != 0) return result;
  take(the_disk->sync_takes);
  const std::lock_guard lock(files_mutex);  // two threads may sync a file at the same time
  file->synced = std::max(file->synced.load(), written);
  ++the_disk->syncs;
  return result;
}

ssize_t write(int fd, const void* bytes, std::size_t size, off_t at) {
  if (the_disk == nullptr) return pass_on(fd, bytes, size, at);
  const bool durable = (::fcntl(fd, F_GETFL) & O_DSYNC) != 0;
  return durable ? write_past_the_page_cache(fd, bytes, size, at)
                 : write_to_the_page_cache(fd, bytes, size, at);
}

}  // namespace

std::uint64_t Disk::synced(const std::string& path) const {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) std::abort();
  for (std::size_t n = 0; n < files_count; ++n) {
    if (files[n].inode == status.st_ino) return files[n].synced;
  }
  return UINT64_MAX;
}

void track_writes_in(Disk* disk) {
  the_disk = disk;
}

}  // namespace carillon::queue

extern "C" {

int fdatasync(int fd) {
  if (carillon::queue::the_disk == nullptr) return static_cast<int>(::syscall(SYS_fdatasync, fd));
  return carillon::queue::sync(fd);
}

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
  return carillon::queue::write(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void* bytes, std::size_t size, off64_t at) {
  return carillon::queue::write(fd, bytes, size, at);
}
}
