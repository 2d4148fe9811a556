// The file without a name, and the timed writes into it.

#include "cli/sync_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "cli/error_text.h"
#include "cli/wait.h"

namespace carillon::cli {
namespace {

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

[[noreturn]] void fail(std::string_view what, const std::string& directory, int error) {
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
    if (error != 0) fail("write a file of 1 MiB", directory, error);
  }
  if (::fsync(file) != 0) fail("sync a file", directory, errno);
}

base::FileDescriptor open_again(int file, int flags) {
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  return base::FileDescriptor(::open(path.c_str(), O_RDWR | O_DSYNC | O_CLOEXEC | flags));
}

std::chrono::nanoseconds timed_write(int file, const Block& block, std::size_t number,
                                     const std::string& directory) {
  const auto began = Clock::now();
  const int error = base::write_at(file, text_of(block), number % kBlocks * kBlock);
  if (error != 0) fail("write durably", directory, error);
  return Clock::now() - began;
}

}  // namespace

SyncTimes measure_syncs(const std::string& directory, const StopSignals& signals) {
  const base::FileDescriptor made = make_file(directory);
  if (!made) fail("make a file", directory, errno);
  fill(made.get(), directory);
  Block block;
  block.bytes.fill('c');
  SyncTimes times;
  base::FileDescriptor file = open_again(made.get(), O_DIRECT);
  times.direct = file && base::write_at(file.get(), text_of(block), 0) == 0;
  if (!times.direct) file = open_again(made.get(), 0);
  if (!file) fail("open a file again", directory, errno);

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

}  // namespace carillon::cli
