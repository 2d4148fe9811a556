// The data directory and its disk, as `carillon check` looks at them.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/checks.h"
#include "cli/error_text.h"
#include "cli/progress.h"
#include "cli/sync_probe.h"
#include "server/data_exposure.h"
#include "server/server.h"

namespace carillon::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

using server::kMinFreeDisk;
constexpr std::chrono::milliseconds kSlowMedian{10};
constexpr std::chrono::milliseconds kSlowWorst{500};

enum class Kind : std::uint8_t { kDisk, kMemory, kNetwork, kLayer, kCopies };

struct FileSystem {
  std::uint32_t magic;
  std::string_view name;
  Kind kind;
};

// Numbers that linux/magic.h lacks are from the sources of these file systems.
constexpr std::array<FileSystem, 16> kFileSystems = {{
    {EXT4_SUPER_MAGIC, "ext4", Kind::kDisk},
    {XFS_SUPER_MAGIC, "xfs", Kind::kDisk},
    {F2FS_SUPER_MAGIC, "f2fs", Kind::kDisk},
    {BTRFS_SUPER_MAGIC, "btrfs", Kind::kCopies},
    {0x2fc12fc1, "zfs", Kind::kCopies},
    {0xca451a4e, "bcachefs", Kind::kCopies},
    {TMPFS_MAGIC, "tmpfs", Kind::kMemory},
    {RAMFS_MAGIC, "ramfs", Kind::kMemory},
    {OVERLAYFS_SUPER_MAGIC, "overlayfs", Kind::kLayer},
    {0x61756673, "aufs", Kind::kLayer},
    {NFS_SUPER_MAGIC, "nfs", Kind::kNetwork},
    {0xff534d42, "cifs", Kind::kNetwork},
    {SMB2_SUPER_MAGIC, "smb", Kind::kNetwork},
    {CEPH_SUPER_MAGIC, "ceph", Kind::kNetwork},
    {V9FS_MAGIC, "9p", Kind::kNetwork},
    {FUSE_SUPER_MAGIC, "fuse", Kind::kNetwork},
}};

std::string ms_text(nanoseconds time) {
  return fmt::format("{:.2f} ms", static_cast<double>(time.count()) / 1e6);
}

// Returns the directory, or the nearest one above it that exists.
std::string existing(const std::string& directory) {
  std::error_code ignored;
  fs::path path = fs::absolute(directory, ignored);
  while (!fs::exists(path, ignored) && path != path.root_path()) path = path.parent_path();
  return path.string();
}

void check_access(const std::string& directory, Findings& findings) {
  struct stat entry {};
  if (::stat(directory.c_str(), &entry) != 0) {
    findings.fail("data", fmt::format("{}: {}", directory, error_text(errno)),
                  "run the check as the server's user, or name another directory with --data");
  } else if (!S_ISDIR(entry.st_mode)) {
    findings.fail("data", directory + " is not a directory", "name another one with --data");
  } else if (::access(directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    const bool read_only = errno == EROFS;
    findings.fail("data", fmt::format("{} is not writable: {}", directory, error_text(errno)),
                  read_only ? "mount it for writing"
                            : "run the check as the server's user, or chown the directory");
  } else if (const std::string why = server::data_exposure(directory); !why.empty()) {
    findings.warn("data", why, "chmod 700 " + directory);
  } else {
    findings.ok("data", fmt::format("{}, for its owner only (mode {:03o})", directory,
                                    entry.st_mode & 0777u));
  }
}

// A directory that is not there is made by `serve`.
void check_parent(const std::string& directory, const std::string& parent, Findings& findings) {
  if (::access(parent.c_str(), W_OK | X_OK) == 0) {
    findings.ok("data", directory + " does not exist; the server will make it");
    return;
  }
  findings.fail(
      "data",
      fmt::format("{} does not exist, and {} is not writable: {}", directory, parent,
                  error_text(errno)),
      "make the directory and chown it to the server's user, or run the check as that user");
}

void check_kind(const std::string& directory, Findings& findings) {
  struct statfs system {};
  if (::statfs(directory.c_str(), &system) != 0) return;  // check_space() tells why
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  const auto* const found = std::find_if(kFileSystems.begin(), kFileSystems.end(),
                                         [&](const auto& one) { return one.magic == magic; });
  if (found == kFileSystems.end()) {
    findings.ok("filesystem", fmt::format("of type {:#x}, of which nothing is known", magic));
    return;
  }
  const std::string name(found->name);
  switch (found->kind) {
    case Kind::kDisk:
      return findings.ok("filesystem", name);
    case Kind::kMemory:
      return findings.fail("filesystem", name + " is memory: a reboot loses all jobs",
                           "use a directory on a disk");
    case Kind::kNetwork:
      return findings.warn("filesystem",
                           name +
                               " may be on a network: whether a synced write is durable, and "
                               "whether two servers are kept apart, is up to it",
                           "use a local disk or a block device");
    case Kind::kLayer:
      return findings.warn("filesystem", name + " is a container's: jobs go with the container",
                           "mount a volume at the data directory");
    case Kind::kCopies:
      return findings.ok("filesystem", name +
                                           " needs free space for each write; if it is full, "
                                           "the server ends. Keep --min-free-disk");
  }
}

void check_space(const std::string& directory, Findings& findings) {
  struct statvfs system {};
  if (::statvfs(directory.c_str(), &system) != 0) {
    findings.fail("space", fmt::format("{}: {}", directory, error_text(errno)), "");
    return;
  }
  const std::uint64_t unit = system.f_frsize;
  const std::uint64_t left = system.f_bavail * unit;
  const std::string text =
      fmt::format("{} free of {}", size_text(left), size_text(system.f_blocks * unit));
  const std::string refused = fmt::format("; below {} puts are refused", size_text(kMinFreeDisk));
  if (left < kMinFreeDisk) {
    findings.fail("space", text + refused + " (OUT_OF_MEMORY)",
                  "free some, or set --min-free-disk of carillon serve");
  } else if (left < 8 * kMinFreeDisk) {
    findings.warn("space", text + refused, "watch it, or enlarge it");
  } else {
    findings.ok("space", text);
  }
}

void check_syncs(const std::string& directory, const StopSignals& signals, Findings& findings) {
  try {
    const SyncTimes times = measure_syncs(directory, signals);
    const std::string text =
        fmt::format("{} median, {} p99, {} worst of {} durable writes{}", ms_text(times.median),
                    ms_text(times.p99), ms_text(times.worst), times.writes,
                    times.direct ? "" : ", not past the page cache");
    if (times.median > kSlowMedian) {
      findings.warn("sync", text + ": each reply to a put waits that long",
                    "use an SSD; or, if a crash of the machine may take back the last 50 ms, "
                    "carillon serve --sync 50ms");
    } else if (times.worst > kSlowWorst) {
      findings.warn("sync", text, "find out what else writes to the disk, or keep it to itself");
    } else {
      findings.ok("sync", text);
    }
  } catch (const ProbeFailed& error) {
    findings.fail("sync", error.what(),
                  error.error == ENOSPC || error.error == EDQUOT
                      ? "free some space"
                      : "run the check as the server's user");
  }
}

}  // namespace

void check_data(const std::string& directory, const StopSignals& signals, Findings& findings) {
  std::error_code ignored;
  const std::string place = existing(directory);
  const bool exists = fs::exists(directory, ignored);
  if (exists) {
    check_access(directory, findings);
  } else {
    check_parent(directory, place, findings);
  }
  if (!fs::is_directory(place, ignored)) return;
  check_kind(place, findings);
  check_space(place, findings);
  if (::access(place.c_str(), W_OK | X_OK) == 0) check_syncs(place, signals, findings);
}

// /proc/locks has a line "1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF" for each lock. To
// try the lock could refuse a server that starts meanwhile.
std::optional<pid_t> user_of(const std::string& directory) {
  std::vector<std::string> inodes;  // what a server locks
  for (const std::string& path : {directory, directory + "/owner.pid"}) {
    struct stat entry {};
    if (::stat(path.c_str(), &entry) == 0) inodes.push_back(fmt::format(":{}", entry.st_ino));
  }
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, type, how, mode, file;
    pid_t pid = 0;
    words >> number >> type >> how >> mode >> pid >> file;
    const auto is_of = [&](const std::string& inode) { return file.ends_with(inode); };
    if (words && type == "FLOCK" && std::any_of(inodes.begin(), inodes.end(), is_of)) return pid;
  }
  return std::nullopt;
}

}  // namespace carillon::cli
