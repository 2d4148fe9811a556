// The functions through which the log makes data durable. They replace those of the C library.

#include "power_loss/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSector = 512;
constexpr std::size_t kPage = 4'096;

Disk* the_disk = nullptr;
std::mutex mutex;  // over the numbers of the writes

std::uint64_t inode_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) std::abort();
  return status.st_ino;
}

// Sleeps for a random time of up to `takes`.
void take() {
  const unsigned most = the_disk->takes;
  if (most == 0) return;
  thread_local std::minstd_rand random(std::random_device{}());
  std::this_thread::sleep_for(std::chrono::microseconds(random() % (most + 1)));
}

ssize_t pass_on(int fd, const void* bytes, std::size_t size, off_t at) {
  return ::syscall(SYS_pwrite64, fd, bytes, size, at);
}

// Where the disk has room for this many bytes.
std::uint64_t room_for(std::size_t size) {
  const Disk& disk = *the_disk;
  const bool any = disk.first != disk.next;
  const std::uint64_t oldest = any ? disk.writes[disk.first % Disk::kWrites].bytes : 0;
  const Disk::Write& last = disk.writes[(disk.next - 1) % Disk::kWrites];
  std::uint64_t at = any ? last.bytes + 2 * last.size : 0;
  const bool wraps = at + size > Disk::kBytes;
  if (wraps) at = 0;
  const bool behind = any && (wraps || last.bytes < oldest);  // the oldest lies behind
  if (disk.next - disk.first == Disk::kWrites || size > Disk::kBytes ||
      (behind && at + size > oldest))
    std::abort();
  return at;
}

// Returns the number of a new write that is under way.
std::uint64_t begin(int fd, const void* bytes, std::size_t size, off_t at) {
  Disk& disk = *the_disk;
  const std::lock_guard lock(mutex);
  const std::uint64_t number = disk.next;
  Disk::Write& write = disk.writes[number % Disk::kWrites];
  const std::uint64_t room = room_for(2 * size);
  char* const before = disk.bytes.data() + room;
  if (::pread(fd, before, size, at) != static_cast<ssize_t>(size)) std::abort();
  std::memcpy(before + size, bytes, size);
  write.inode = inode_of(fd);
  write.at = static_cast<std::uint64_t>(at);
  write.size = size;
  write.bytes = room;
  write.durable = false;
  disk.next = number + 1;
  return number;
}

// Forgets the oldest writes, as far as all are durable. REQUIRES: mutex is held.
void forget() {
  Disk& disk = *the_disk;
  while (disk.first != disk.next && disk.writes[disk.first % Disk::kWrites].durable) ++disk.first;
}

bool blank(const void* bytes, std::size_t size) {
  return std::string_view(static_cast<const char*>(bytes), size).find_first_not_of('\0') ==
         std::string_view::npos;
}

ssize_t write(int fd, const void* bytes, std::size_t size, off_t at) {
  if (the_disk == nullptr || size % kPage != 0 || blank(bytes, size))
    return pass_on(fd, bytes, size, at);
  const std::uint64_t number = begin(fd, bytes, size, at);
  const bool durable = (::fcntl(fd, F_GETFL) & O_DSYNC) != 0;
  if (durable) take();
  const ssize_t wrote = pass_on(fd, bytes, size, at);
  if (!durable) return wrote;
  take();
  const std::lock_guard lock(mutex);
  the_disk->writes[number % Disk::kWrites].durable = true;
  forget();
  return wrote;
}

// Calls `action` for the writes to a file that may not be durable and have a number below `end`.
template <typename Action>
void for_each_write(std::uint64_t inode, std::uint64_t end, Action action) {
  Disk& disk = *the_disk;
  const std::lock_guard lock(mutex);
  for (std::uint64_t n = disk.first; n < end; ++n) {
    if (disk.writes[n % Disk::kWrites].inode == inode) action(disk.writes[n % Disk::kWrites]);
  }
  forget();
}

int sync(int fd) {
  const std::uint64_t inode = inode_of(fd);
  const std::uint64_t end = the_disk->next;
  bool any = false;  // RocksDB syncs its files, too
  for_each_write(inode, end, [&any](const Disk::Write&) { any = true; });
  const auto result = static_cast<int>(::syscall(SYS_fdatasync, fd));
  if (result != 0 || !any) return result;
  take();
  for_each_write(inode, end, [](Disk::Write& write) { write.durable = true; });
  return result;
}

// Which parts of a write have reached the disk.
enum class Kept : std::uint8_t { kNone, kAll, kSomeSectors, kSomePages };

void put(std::fstream& file, const Disk& disk, const Disk::Write& write, bool after, Kept kept,
         std::mt19937_64& random) {
  const char* const bytes = disk.bytes.data() + write.bytes + (after ? write.size : 0);
  const std::size_t step = kept == Kept::kSomePages ? kPage : kSector;
  for (std::size_t at = 0; at < write.size; at += step) {
    if (kept == Kept::kNone || (kept != Kept::kAll && random() % 2 == 0)) continue;
    file.seekp(static_cast<std::streamoff>(write.at + at));
    file.write(bytes + at, static_cast<std::streamsize>(step));
  }
}

}  // namespace

// All of it is taken back, the newest write first, and then some of it is done again.
std::string Disk::lose_power(const fs::path& made, const fs::path& copy,
                             std::mt19937_64& random) const {
  std::map<std::uint64_t, fs::path> names;
  for (const auto& file : fs::directory_iterator(made)) {
    struct stat status {};
    if (::stat(file.path().c_str(), &status) != 0) std::abort();
    names[status.st_ino] = file.path().filename();
  }
  const auto open = [&](const Write& write) {
    const auto mode = std::ios::binary | std::ios::in | std::ios::out;
    return std::fstream(copy / names.at(write.inode), mode);
  };
  std::uint64_t lost = 0;
  for (std::uint64_t n = next; n > first; --n) {
    const Write& write = writes[(n - 1) % kWrites];
    if (write.durable || !names.contains(write.inode)) continue;
    std::fstream file = open(write);
    put(file, *this, write, false, Kept::kAll, random);
    ++lost;
  }
  // One way for all writes, or another for each.
  const std::uint64_t all = random() % 5;
  std::string told = "of " + std::to_string(lost) + " writes,";
  for (std::uint64_t n = first; n < next; ++n) {
    const Write& write = writes[n % kWrites];
    if (write.durable || !names.contains(write.inode)) continue;
    const std::uint64_t kept = all < 4 ? all : random() % 4;
    std::fstream file = open(write);
    put(file, *this, write, true, static_cast<Kept>(kept), random);
    told += " " + names.at(write.inode).string() + " block " + std::to_string(write.at / kPage) +
            (kept == 0   ? " lost"
             : kept == 1 ? " kept"
             : kept == 2 ? " torn"
                         : " holed");
  }
  return told;
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
