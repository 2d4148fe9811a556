// The checks of the machine by `carillon check`: the data directory and its disk, the clock,
// descriptors, memory, ports, and the files of the certificate and of the tokens.

#include "cli/checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "base/start_error.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wait.h"
#include "server/api/tokens.h"
#include "server/data_directory.h"
#include "server/descriptors.h"
#include "server/net/memory_shares.h"
#include "server/net/tls_context.h"
#include "server/server.h"

namespace carillon::cli {
// --- How long a disk takes to make a record durable, measured by writes like those of the server's
// log (queue/store/log/log_segment.h): 4 KiB each, past the page cache, durable when the call
// returns, into blocks that were written before. The file of the probe has 1 MiB, and no name while
// it is written. So nothing is left of it, also if the process is killed.

namespace {

struct SyncTimes {
  std::chrono::nanoseconds median{0};
  std::chrono::nanoseconds p99{0};
  std::chrono::nanoseconds worst{0};
  std::size_t writes = 0;
  bool direct = false;  // the file system lets writes go past the page cache
};

// The file of the probe could not be made or written. `error` is the errno.
struct ProbeFailed : Failure {
  ProbeFailed(const std::string& text, int number) : Failure(text), error(number) {}

  int error;
};

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 4'096;
constexpr std::size_t kBlocks = 256;
constexpr std::size_t kMostWrites = 400;
constexpr std::chrono::seconds kLongest{2};

struct alignas(kBlock) Block {
  std::array<char, kBlock> bytes{};
};

std::string_view text_of(const Block& block) {
  return {block.bytes.data(), block.bytes.size()};
}

[[noreturn]] void fail_probe(std::string_view what, const std::string& directory, int error) {
  throw ProbeFailed(fmt::format("cannot {} in {}: {}", what, directory, error_text(error)), error);
}

// Not every file system has files without a name. There the name is removed at once.
base::FileDescriptor make_file(const std::string& directory) {
  base::FileDescriptor file(::open(directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  const std::string name = fmt::format("{}/.carillon-check-{}", directory, ::getpid());
  file = base::FileDescriptor(
      ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const int error = errno;
  if (file) ::unlink(name.c_str());
  errno = error;
  return file;
}

// As LogSegment does: what is written later must not have to wait for the file system.
void fill(int file, const std::string& directory) {
  const Block zeros;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const int error = base::write_at(file, text_of(zeros), block * kBlock);
    if (error != 0) fail_probe("write a file of 1 MiB", directory, error);
  }
  if (::fsync(file) != 0) fail_probe("sync a file", directory, errno);
}

base::FileDescriptor open_again(int file, int flags) {
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  return base::FileDescriptor(::open(path.c_str(), O_RDWR | O_DSYNC | O_CLOEXEC | flags));
}

std::chrono::nanoseconds timed_write(int file, const Block& block, std::size_t number,
                                     const std::string& directory) {
  const auto began = Clock::now();
  const int error = base::write_at(file, text_of(block), number % kBlocks * kBlock);
  if (error != 0) fail_probe("write durably", directory, error);
  return Clock::now() - began;
}

// Makes up to 400 writes in the directory, for at most 2 s, which a single slow write may exceed.
// Throws ProbeFailed, and Interrupted (wait.h) once a signal has come.
SyncTimes measure_syncs(const std::string& directory, const StopSignals& signals) {
  const base::FileDescriptor made = make_file(directory);
  if (!made) fail_probe("make a file", directory, errno);
  fill(made.get(), directory);
  Block block;
  block.bytes.fill('c');
  SyncTimes times;
  base::FileDescriptor file = open_again(made.get(), O_DIRECT);
  times.direct = file && base::write_at(file.get(), text_of(block), 0) == 0;
  if (!times.direct) file = open_again(made.get(), 0);
  if (!file) fail_probe("open a file again", directory, errno);

  std::vector<std::chrono::nanoseconds> took;
  for (const auto end = Clock::now() + kLongest; took.size() < kMostWrites && Clock::now() < end;) {
    if (signals.came()) throw Interrupted();
    took.push_back(timed_write(file.get(), block, took.size(), directory));
  }
  std::sort(took.begin(), took.end());
  times.writes = took.size();
  times.median = took[took.size() / 2];
  times.p99 = took[took.size() * 99 / 100];
  times.worst = took.back();
  return times;
}

}  // namespace

// --- The data directory and its disk.

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

// --- The clock, descriptors, memory and ports.

namespace {

constexpr std::int64_t kNsInSecond = 1'000'000'000;
constexpr std::int64_t kClockStep = 50'000'000;    // ns; slewing moves a clock by 1 ms in 2 s
constexpr std::time_t kFirstYear = 1'735'689'600;  // 2025-01-01
constexpr std::size_t kUsualConnections = 10'000;  // the default of --max-connections

// Returns the number after `name` in a file of lines "name: number ...", or none.
std::optional<std::uint64_t> number_in(const std::string& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10);
  }
  return std::nullopt;
}

// In the text of ip_local_reserved_ports, "11300,11380-11390".
bool is_reserved(std::uint16_t port, const std::string& ranges) {
  std::istringstream parts(ranges);
  for (std::string part; std::getline(parts, part, ',');) {
    char* rest = nullptr;
    const auto first = std::strtoul(part.c_str(), &rest, 10);
    const auto last = *rest == '-' ? std::strtoul(rest + 1, nullptr, 10) : first;
    if (first <= port && port <= last) return true;
  }
  return false;
}

std::int64_t ns_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * kNsInSecond + time.tv_nsec;
}

}  // namespace

std::int64_t clock_offset() {
  return ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC);
}

void check_clock(std::int64_t before, Findings& findings) {
  const std::int64_t moved = clock_offset() - before;
  const std::string by = fmt::format("{:+.3f} s", static_cast<double>(moved) / kNsInSecond);
  if (std::time(nullptr) < kFirstYear) {
    findings.fail("clock", "is wrong: it shows a time before 2025", "set it");
    return;
  }
  if (moved > kClockStep || moved < -kClockStep) {
    findings.warn("clock", fmt::format("was set by {} during the check", by),
                  "let a daemon that slews it (chrony) keep it");
  }
  timex state{};
  const int answer = ::adjtimex(&state);
  if (answer < 0) {
    findings.ok("clock",
                "the system does not say whether it is synchronised: " + error_text(errno));
  } else if (answer == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
    findings.warn("clock", "is not synchronised: jobs come by a clock that drifts",
                  "start chrony or systemd-timesyncd; in a container, on the host");
  } else {
    findings.ok("clock", fmt::format("synchronised, to {:.1f} ms at the worst",
                                     static_cast<double>(state.maxerror) / 1'000));
  }
}

void check_descriptors(std::optional<pid_t> server, Findings& findings) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  std::uint64_t allowed = limit.rlim_max;
  if (server) {
    const std::string file = fmt::format("/proc/{}/limits", *server);
    allowed = number_in(file, "Max open files").value_or(allowed);
  }
  const std::string advice = "raise LimitNOFILE of the service, or ulimit -Hn";
  try {
    const auto shares = server::share_descriptors(allowed, kUsualConnections, true);
    const std::string text = fmt::format("{}: {} connections, and {} files of the store", allowed,
                                         shares.connections, shares.open_files);
    if (shares.connections >= kUsualConnections) return findings.ok("descriptors", text);
    findings.warn("descriptors", text, advice + ", if more connections are wanted");
  } catch (const base::StartError& error) {
    findings.fail("descriptors", error.what(), advice);
  }
}

void check_memory(std::optional<pid_t> server, Findings& findings) {
  const std::uint64_t limit = server::memory_limit();
  const auto machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string text =
      fmt::format("{} of the {}", size_text(limit), limit < machine ? "control group" : "machine");
  if (limit < 2 * server::kLeastMemory) {
    findings.warn("memory", text + "; the server takes half, and at least 128 MiB",
                  "allow 256 MiB, or the kernel may end the server");
  } else {
    findings.ok("memory", text + "; the server takes half, unless --memory is given");
  }
  std::uint64_t overcommit = 0;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> overcommit;
  if (overcommit == 2) {
    findings.warn("overcommit",
                  "vm.overcommit_memory is 2: memory may be refused while there is "
                  "some, and puts with it (OUT_OF_MEMORY)",
                  "set it to 0 or 1, or give the server's --memory room below CommitLimit");
  }
  const std::uint64_t swap = number_in("/proc/meminfo", "SwapTotal:").value_or(0) << 10;
  const std::string status = server ? fmt::format("/proc/{}/status", *server) : "";
  const std::uint64_t swapped = number_in(status, "VmSwap:").value_or(0) << 10;
  if (swapped > 0) {
    findings.warn(
        "swap",
        fmt::format("{} of the server are swapped out: it answers late", size_text(swapped)),
        "lower --memory or vm.swappiness, or set MemorySwapMax=0 of the service");
  } else {
    findings.ok("swap", swap == 0 ? "none" : size_text(swap) + ", not used by a server");
  }
}

void check_port(const server::Address& address, Findings& findings) {
  if (address.is_unix()) return;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  std::string reserved;
  std::ifstream("/proc/sys/net/ipv4/ip_local_reserved_ports") >> reserved;
  if (address.port < first || address.port > last || is_reserved(address.port, reserved)) return;
  findings.warn("port",
                fmt::format("{} is one that the system gives to outgoing connections "
                            "({} to {}): a start may find it taken",
                            address.port, first, last),
                fmt::format("sysctl net.ipv4.ip_local_reserved_ports={}", address.port));
}

// --- The certificate and the tokens.

namespace {

using std::chrono::system_clock;

constexpr std::chrono::days kExpiresSoon{21};

void check_times(const server::TlsContext& tls, Findings& findings) {
  const auto left = tls.not_after() - system_clock::now();
  using std::chrono::days;
  const days whole = std::max(std::chrono::duration_cast<days>(left), days(0));
  const std::string more = counted(static_cast<std::uint64_t>(whole.count()), "day") + " more";
  const std::string& file = tls.files().certificate;
  constexpr std::string_view kRenew = "renew it, and send SIGHUP to the server";
  if (left.count() <= 0) {
    findings.fail("tls", fmt::format("the certificate in {} has ended: clients refuse it", file),
                  std::string(kRenew));
  } else if (tls.not_before() > system_clock::now()) {
    findings.fail("tls", fmt::format("the certificate in {} does not hold yet", file),
                  "wait, or set the clock right");
  } else if (left < kExpiresSoon) {
    findings.warn("tls", fmt::format("the certificate in {} is good for {}", file, more),
                  std::string(kRenew));
  } else {
    findings.ok("tls",
                fmt::format("the certificate in {} fits its key, and is good for {}", file, more));
  }
}

void check_tls(const std::string& certificate, const std::string& key, Findings& findings) {
  try {
    const server::TlsContext tls({.certificate = certificate, .key = key});
    check_times(tls, findings);
    const std::string why = server::key_exposure(key);
    if (!why.empty()) findings.warn("tls", why, "chmod 600 " + key);
  } catch (const base::StartError& error) {
    findings.fail("tls", error.what(), "carillon serve would not start with it");
  }
}

}  // namespace

void check_secrets(const SecretFiles& files, Findings& findings) {
  if (files.certificate && files.key) check_tls(*files.certificate, *files.key, findings);
  if (!files.tokens) return;
  try {
    const server::Tokens tokens(*files.tokens);
    findings.ok("tokens", fmt::format("{} in {}", tokens.size(), *files.tokens));
  } catch (const base::StartError& error) {
    findings.fail("tokens", error.what(), "carillon serve would not start with it");
  }
}

}  // namespace carillon::cli
