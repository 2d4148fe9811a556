// Lists, copies, syncs and renames.

#include "cli/directory_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "cli/exit_status.h"
#include "cli/progress.h"

namespace carillon::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyStep = 4 << 20;

[[noreturn]] void fail(std::string_view what, const std::string& path, int error) {
  throw Failure(fmt::format("cannot {} {}: {}", what, path, error_text(error)));
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The log first, CURRENT last.
int rank_of(std::string_view name) {
  if (name == "CURRENT") return 2;
  return name.starts_with("jobs-") ? 0 : 1;
}

}  // namespace

DirectoryCopy::DirectoryCopy(std::string to) : to_(std::move(to)) {
  while (to_.size() > 1 && to_.ends_with('/')) to_.pop_back();
  struct stat status {};
  if (::lstat(to_.c_str(), &status) == 0)
    throw Failure(fmt::format("{} exists; name a directory that does not exist", to_));
  if (errno != ENOENT) fail("make", to_, errno);
  partial_ = to_ + ".partial";
}

DirectoryCopy::~DirectoryCopy() {
  std::error_code ignored;
  if (made_) fs::remove_all(partial_, ignored);
}

void DirectoryCopy::begin(const std::string& from) {
  list(from);
  refuse_if_too_large();
  // The jobs' bodies are in it, so only its owner may read it.
  if (::mkdir(partial_.c_str(), 0700) != 0) {
    if (errno != EEXIST) fail("make", partial_, errno);
    throw Failure(fmt::format(
        "{} exists: another backup to this name is running, or was killed; if it was killed, "
        "remove the directory first",
        partial_));
  }
  made_ = true;
}

void DirectoryCopy::list(const std::string& from) {
  from_ = from;
  std::error_code error;
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    File file{.name = at->path().filename().string()};
    file.size = at->file_size(error);
    if (error) break;
    bytes_ += file.size;
    files_.push_back(std::move(file));
  }
  if (error) fail("read", from, error.value());
  std::sort(files_.begin(), files_.end(), [](const File& left, const File& right) {
    return std::pair(rank_of(left.name), left.name) < std::pair(rank_of(right.name), right.name);
  });
}

void DirectoryCopy::refuse_if_too_large() const {
  const std::string parent = parent_of(to_);
  struct statvfs disk {};
  if (::statvfs(parent.c_str(), &disk) != 0) fail("make a directory in", parent, errno);
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (bytes_ < free) return;
  throw Failure(fmt::format("the backup needs {}, and the disk of {} has {} free",
                            size_text(bytes_), parent, size_text(free)));
}

void DirectoryCopy::run(const std::function<void(std::uint64_t done)>& progress) {
  buffer_.resize(kCopyStep);
  for (const File& file : files_) copy(file, progress);
  if (const int error = base::sync_directory(partial_.c_str()); error != 0)
    fail("write", partial_, error);
}

void DirectoryCopy::copy(const File& file,
                         const std::function<void(std::uint64_t done)>& progress) {
  const std::string from = from_ + "/" + file.name;
  const std::string to = partial_ + "/" + file.name;
  const base::FileDescriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!source) fail("read", from, errno);
  const base::FileDescriptor target(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!target) fail("write", to, errno);
  std::uint64_t at = 0;
  do {
    std::size_t size = std::min<std::uint64_t>(kCopyStep, file.size - at);
    const std::size_t wanted = size;
    int error = base::read_at(source.get(), buffer_.data(), size, at);
    if (error != 0) fail("read", from, error);
    if (size != wanted) throw Failure(fmt::format("{} has become shorter meanwhile", from));
    error = base::write_at(target.get(), {buffer_.data(), size}, at);
    if (error == 0 && ::fdatasync(target.get()) != 0) error = errno;
    if (error != 0) fail("write", to, error);
    at += size;
    done_ += size;
    progress(done_);
  } while (at < file.size);
}

void DirectoryCopy::finish() {
  rename_to(to_);
}

bool DirectoryCopy::finish_as_damaged() {
  const std::string name = to_ + ".damaged";
  struct stat status {};
  if (::lstat(name.c_str(), &status) == 0) return false;
  rename_to(name);
  return true;
}

void DirectoryCopy::rename_to(const std::string& name) {
  if (::rename(partial_.c_str(), name.c_str()) != 0) fail("make", name, errno);
  made_ = false;
  const std::string parent = parent_of(to_);
  if (const int error = base::sync_directory(parent.c_str()); error != 0)
    fail("write", parent, error);
}

}  // namespace carillon::cli
