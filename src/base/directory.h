// Directory: a directory that is held open, and used through its descriptor. Whatever is renamed or
// made at its path later, the files are in this one. Code that needs a path has held_path().
//
//   const Directory directory("carillon-data");
//   if (directory.error() != 0) ...
//   const FileDescriptor file = directory.open("jobs-1.data", O_RDONLY | O_CLOEXEC);
//   if (!file) return errno;
//
// Thread safety: any thread may call the const methods.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace carillon::base {

class Directory {
 public:
  explicit Directory(std::string path);

  // The errno with which it could not be opened, or 0.
  int error() const { return error_; }
  int descriptor() const { return directory_.get(); }
  const std::string& path() const { return path_; }
  // The path of a file in it, for messages.
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // A path that leads to this directory whatever happens at path(), as long as it is open. It is
  // path() itself where /proc is not there.
  const std::string& held_path() const { return held_path_; }
  // The text with path() where it has held_path(), for people.
  std::string with_path(std::string text) const;
  // If path() leads to another directory now, or to nothing: what was seen, in words. If the system
  // cannot tell, nothing.
  std::optional<std::string> moved() const;

  // As open(2), for a file in the directory.
  FileDescriptor open(const std::string& name, int flags, mode_t mode = 0) const;
  // Each of these returns 0 or an errno.
  int list(std::vector<std::string>& names) const;  // in no order, without "." and ".."
  int unlink(const std::string& name) const;
  // Fails with EEXIST if there is a `to`, where the file system can tell.
  int rename_to_new(const std::string& from, const std::string& to) const;
  int sync() const;  // makes the names durable

 private:
  std::string path_;
  FileDescriptor directory_;
  std::string held_path_;
  int error_ = 0;
};

}  // namespace carillon::base
