// The data directory, by statvfs() and stat() (data_directory.h).
#include "server/data_directory.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <utility>

namespace carillon::server {

namespace {

// Returns how many bytes an unprivileged process may still write; nothing if the file system cannot
// be asked.
std::optional<std::uint64_t> free_bytes(const std::string& directory) {
  struct statvfs system {};
  int error = 0;
  do error = ::statvfs(directory.c_str(), &system);
  while (error != 0 && errno == EINTR);
  if (error != 0) return std::nullopt;
  return std::uint64_t{system.f_bavail} * system.f_frsize;
}

std::uint64_t mib(std::uint64_t bytes) {
  return bytes >> 20;
}

}  // namespace

DiskSpace::DiskSpace(std::optional<std::string> directory, std::uint64_t least)
    : directory_(std::move(directory)), least_(least) {}

bool DiskSpace::low(std::uint64_t mono_ns) {
  if (!directory_ || least_ == 0) return false;
  if (!looked_ns_ || mono_ns - *looked_ns_ >= kPeriodNs) {
    looked_ns_ = mono_ns;
    look();
  }
  return low_;
}

void DiskSpace::look() {
  const std::optional<std::uint64_t> free = free_bytes(*directory_);
  if (!free) return;
  const std::uint64_t enough = low_ ? least_ + least_ / 8 : least_;
  if (low_ == (*free < enough)) return;
  low_ = !low_;
  if (!low_)
    return spdlog::info("puts are taken again: {} MiB are free where {} is", mib(*free),
                        *directory_);
  spdlog::warn(
      "every put is refused: {} MiB are free where {} is, and {} must stay free, so that jobs "
      "can be deleted and the server can start (--min-free-disk)",
      mib(*free), *directory_, mib(least_));
}

// --- data_exposure(), by stat().

std::string data_exposure(const std::string& directory) {
  struct stat entry {};
  if (::stat(directory.c_str(), &entry) != 0 || (entry.st_mode & 0077) == 0) return {};
  return fmt::format("{} has mode {:03o}: other users may read the jobs", directory,
                     entry.st_mode & 0777u);
}

}  // namespace carillon::server
