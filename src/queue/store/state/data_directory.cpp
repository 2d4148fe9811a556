// Makes a data directory, refuses one with other things in it, and locks it.

#include "queue/store/state/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/file_io.h"
#include "carillon/queue/store.h"
#include "queue/store/log/log_segment.h"

namespace carillon::queue {

namespace fs = std::filesystem;

namespace {

// The process that owns the directory holds this file with flock, which ends with the process,
// however it ends. The file says that process's id.
constexpr const char* kOwnerFile = "owner.pid";

// Returns true for files that may be in a directory without a store: our own, and those that
// RocksDB leaves if it is stopped while it makes a store.
bool may_precede_store(std::string_view name) {
  return name == kOwnerFile || name == "lost+found" || name == "LOCK" || name == "IDENTITY" ||
         name.starts_with("LOG") || name.starts_with("MANIFEST-") || name.starts_with("OPTIONS-") ||
         name.ends_with(".dbtmp");
}

std::string read_owner(int file) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  const std::string owner(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return owner.substr(0, owner.find_first_not_of("0123456789"));
}

// Makes the name of a directory durable. Returns 0 or an errno.
int sync_name(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return base::sync_directory(parent.empty() ? "." : parent.c_str());
}

// Makes one directory if it is not there, durably. Returns 0 or an errno.
int make_directory(const fs::path& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return sync_name(path);
  const int error = errno;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return error;
  // An earlier start may have made it, and died before its name was durable. A directory further up
  // may be one where this user cannot sync; no start has made that one.
  return sync_name(path) == EIO ? EIO : 0;
}

}  // namespace

DataDirectory::DataDirectory(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  if (path_.empty()) throw StoreError("the data directory's name is empty");
  make();
  open();
  refuse_other_things();
  lock();
}

bool DataDirectory::has_store() const {
  std::error_code ignored;
  return fs::exists(fs::path(path_) / "CURRENT", ignored);
}

std::string DataDirectory::message(const std::string& what) const {
  return "data directory " + path_ + " " + (files_ ? files_->with_path(what) : what);
}

// Only the owner may read the directory, as the jobs' bodies are in it.
void DataDirectory::make() const {
  if (has_store()) return;
  const fs::path whole(path_);
  fs::path made;
  for (const fs::path& part : whole) {
    made /= part;
    const int error = make_directory(made, made == whole ? 0700 : 0777);
    if (error == 0) continue;
    throw StoreError(message("cannot be made: " + made.string() + ": " + std::strerror(error)));
  }
  std::error_code ignored;
  if (!fs::is_directory(made, ignored)) throw StoreError(message("is not a directory"));
}

void DataDirectory::open() {
  files_.emplace(path_);
  if (files_->error() == 0) return;
  throw StoreError(message(std::string("cannot be opened: ") + std::strerror(files_->error())));
}

void DataDirectory::refuse_other_things() const {
  if (has_store()) return;
  std::error_code error;
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (may_precede_store(name)) continue;
    if (name.ends_with(".sst") || LogSegment::number_of(name)) {
      throw StoreError(message("has " + name + ", and no file CURRENT" + salvage_hint(path_)));
    }
    throw StoreError(message("is neither empty nor a data directory of Carillon's: there is " +
                             name + " in it"));
  }
  if (error) throw StoreError(message("cannot be read: " + error.message()));
}

void DataDirectory::lock() {
  // Lock the directory too, because the file may be removed. Not every file system can lock one:
  // NFS cannot.
  const bool is_free =
      ::flock(files_->descriptor(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  lock_ = files_->open(kOwnerFile, O_RDWR | O_CLOEXEC | (is_free ? O_CREAT : 0), 0644);
  if (!lock_ && is_free)
    throw StoreError(message(std::string("is not writable: ") + std::strerror(errno)));
  const std::string self = std::to_string(::getpid());
  if (is_free && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) {
    // Only the lock counts. The id is there for the error message of another process, and writing
    // it may fail on a full disk.
    if (::ftruncate(lock_.get(), 0) == 0)
      std::ignore = ::pwrite(lock_.get(), self.data(), self.size(), 0);
    return;
  }
  const int error = is_free ? errno : EWOULDBLOCK;
  const std::string owner = read_owner(lock_.get());
  if (error != EWOULDBLOCK)
    throw StoreError(message(std::string("cannot be locked: ") + std::strerror(error)));
  // Processes of two containers may have the same id: each server is process 1 in its container.
  if (owner == self)
    throw StoreError(
        message("is open already, in this process or in another container (pid " + owner + ")"));
  const std::string pid = owner.empty() ? "" : " (pid " + owner + ")";
  throw StoreError(
      message("is in use by another process" + pid + ": stop it, or use another directory"));
}

}  // namespace carillon::queue
