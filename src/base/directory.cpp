// The system calls that take the descriptor of a directory.

#include "base/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace carillon::base {

namespace {

int error_of(int result) {
  return result == 0 ? 0 : errno;
}

}  // namespace

Directory::Directory(std::string path) : path_(std::move(path)) {
  directory_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_) error_ = errno;
}

FileDescriptor Directory::open(const std::string& name, int flags, mode_t mode) const {
  return FileDescriptor(::openat(directory_.get(), name.c_str(), flags, mode));
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
