// The system calls that take the descriptor of a directory.

#include "base/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <utility>

namespace carillon::base {

namespace {

int error_of(int result) {
  return result == 0 ? 0 : errno;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string name_of(const struct stat& directory) {
  return "inode " + std::to_string(directory.st_ino) + " of device " +
         std::to_string(major(directory.st_dev)) + ":" + std::to_string(minor(directory.st_dev));
}

}  // namespace

Directory::Directory(std::string path) : path_(std::move(path)) {
  directory_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  held_path_ = path_;
  if (!directory_) {
    error_ = errno;
    return;
  }
  const std::string held = "/proc/self/fd/" + std::to_string(directory_.get());
  struct stat by_descriptor {};
  struct stat by_held {};
  if (::fstat(directory_.get(), &by_descriptor) == 0 && ::stat(held.c_str(), &by_held) == 0 &&
      is_same(by_descriptor, by_held))
    held_path_ = held;
}

std::string Directory::with_path(std::string text) const {
  if (held_path_ == path_) return text;
  for (std::size_t at = 0; (at = text.find(held_path_, at)) != std::string::npos;) {
    const std::size_t end = at + held_path_.size();
    const bool longer = end < text.size() && text[end] >= '0' && text[end] <= '9';
    if (!longer) text.replace(at, held_path_.size(), path_);
    at = longer ? end : at + path_.size();
  }
  return text;
}

std::optional<std::string> Directory::moved() const {
  struct stat is {};
  struct stat was {};
  if (::fstat(directory_.get(), &was) != 0) return std::nullopt;
  const int error = error_of(::stat(path_.c_str(), &is));
  const bool gone = error == ENOENT || error == ENOTDIR;
  if (!gone && (error != 0 || is_same(was, is))) return std::nullopt;
  std::string seen = "its path leads to " + (gone ? "nothing" : name_of(is)) + " now, and led to " +
                     name_of(was) + " when it was opened";
  std::array<char, PATH_MAX> now{};
  const ssize_t size = ::readlink(held_path_.c_str(), now.data(), now.size());
  if (size > 0) seen += ", which is " + std::string(now.data(), static_cast<std::size_t>(size));
  return seen;
}

FileDescriptor Directory::open(const std::string& name, int flags, mode_t mode) const {
  // O_NONBLOCK: a pipe that somebody has put there would never be opened. Files know no other way.
  return FileDescriptor(::openat(directory_.get(), name.c_str(), flags | O_NONBLOCK, mode));
}

int Directory::list(std::vector<std::string>& names) const {
  // The place of a reader belongs to the open file, so it needs one of its own.
  const int own = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = own < 0 ? nullptr : ::fdopendir(own);
  if (entries == nullptr) {
    const int error = errno;
    if (own >= 0) ::close(own);
    return error;
  }
  errno = 0;
  while (const dirent* const entry = ::readdir(entries)) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  ::closedir(entries);
  return error;
}

int Directory::unlink(const std::string& name) const {
  return error_of(::unlinkat(directory_.get(), name.c_str(), 0));
}

int Directory::rename_to_new(const std::string& from, const std::string& to) const {
  const int at = directory_.get();
  const int error = error_of(::renameat2(at, from.c_str(), at, to.c_str(), RENAME_NOREPLACE));
  if (error != EINVAL && error != ENOSYS) return error;  // the file system cannot tell
  return error_of(::renameat(at, from.c_str(), at, to.c_str()));
}

int Directory::sync() const {
  return error_of(::fsync(directory_.get()));
}

}  // namespace carillon::base
