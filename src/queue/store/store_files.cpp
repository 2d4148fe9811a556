// Which files of RocksDB's are treated specially, and how.

#include "queue/store/store_files.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::queue {

using rocksdb::FileOptions;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

constexpr const char* kNextLog = "/next-log";

// The number in the path DIR/NUMBER.log, which is what RocksDB calls the files of its log.
std::optional<std::uint64_t> log_number(std::string_view path) {
  constexpr std::string_view kSuffix = ".log";
  if (!path.ends_with(kSuffix)) return std::nullopt;
  path.remove_suffix(kSuffix.size());
  path.remove_prefix(path.rfind('/') + 1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (error != std::errc() || end != path.data() + path.size()) return std::nullopt;
  return number;
}

// The readable part of a log. Where it was cut, it ends in a byte that is no record, so that
// RocksDB knows, too.
class ReadableLog final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  ReadableLog(std::unique_ptr<FSSequentialFile> file, const CheckedLog& log)
      : FSSequentialFileOwnerWrapper(std::move(file)), left_(log.readable), cut_(log.cut) {}

  IOStatus Read(std::size_t size, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
    IOStatus status = target()->Read(wanted, options, result, scratch, debug);
    if (!status.ok()) return status;
    left_ -= result->size();
    if (left_ == 0 && cut_ && result->size() < size) {
      cut_ = false;
      std::memmove(scratch, result->data(), result->size());
      scratch[result->size()] = '!';
      *result = Slice(scratch, result->size() + 1);
    }
    return status;
  }

  IOStatus Skip(std::uint64_t size) override {
    size = std::min(size, left_);
    left_ -= size;
    return target()->Skip(size);
  }

 private:
  std::uint64_t left_;
  bool cut_;
};

// A failed write to any file but the log costs that file alone. Without this RocksDB takes some of
// them (a quota, a size limit) for the end of the database, and polls for free space on its own
// after others.
IOStatus retryable(IOStatus status) {
  if (status.ok() || !status.IsIOError()) return status;
  IOStatus retry =
      IOStatus::IOError(status.getState() == nullptr ? "write failed" : status.getState());
  retry.SetRetryable(true);
  retry.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
  return retry;
}

class RetryableFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return retryable(target()->Append(data, options, debug));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* debug) override {
    return retryable(target()->Append(data, options, info, debug));
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    return retryable(target()->Truncate(size, options, debug));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return retryable(target()->Close(options, debug));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return retryable(target()->Flush(options, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return retryable(target()->Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return retryable(target()->Fsync(options, debug));
  }
  IOStatus RangeSync(std::uint64_t offset, std::uint64_t size, const IOOptions& options,
                     IODebugContext* debug) override {
    return retryable(target()->RangeSync(offset, size, options, debug));
  }
};

// RocksDB's OPTIONS files are for people to read. It writes four of them when it makes a database,
// and syncs eight times.
bool is_options_file(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("OPTIONS-");
}

class UnsyncedFile final : public RetryableFile {
 public:
  using RetryableFile::RetryableFile;

  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class StoreDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  using FSDirectoryWrapper::FSDirectoryWrapper;

  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& why) override {
    if (is_options_file(why.renamed_new_name)) return IOStatus::OK();
    return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, why);
  }
};

}  // namespace

StoreFiles::StoreFiles(const std::string& directory, std::uint64_t step)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), directory_(directory), step_(step) {}

StoreFiles::~StoreFiles() {
  if (next_) ::unlink((directory_ + kNextLog).c_str());
}

IOStatus StoreFiles::reserve(std::uint64_t bytes) {
  LogFile* current = current_.load(std::memory_order_acquire);
  IOStatus status = current == nullptr ? IOStatus::OK() : current->reserve(bytes);
  if (status.ok() && !next_)
    status = LogFile::create(directory_ + kNextLog, step_, current_, &next_);
  if (status.ok()) status = next_->reserve(bytes);
  return status;
}

bool StoreFiles::log_broken() const {
  const LogFile* log = current_.load(std::memory_order_acquire);
  return log != nullptr && log->broken();
}

IOStatus StoreFiles::NewWritableFile(const std::string& path, const FileOptions& options,
                                     std::unique_ptr<FSWritableFile>* file, IODebugContext* debug) {
  if (log_number(path)) return make_log(path, file);
  std::unique_ptr<FSWritableFile> plain;
  IOStatus status = retryable(target()->NewWritableFile(path, options, &plain, debug));
  if (!status.ok()) return status;
  if (is_options_file(path)) {
    *file = std::make_unique<UnsyncedFile>(std::move(plain));
  } else {
    *file = std::make_unique<RetryableFile>(std::move(plain));
  }
  return status;
}

IOStatus StoreFiles::NewDirectory(const std::string& path, const IOOptions& options,
                                  std::unique_ptr<rocksdb::FSDirectory>* directory,
                                  IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> plain;
  IOStatus status = target()->NewDirectory(path, options, &plain, debug);
  if (status.ok()) *directory = std::make_unique<StoreDirectory>(std::move(plain));
  return status;
}

IOStatus StoreFiles::make_log(const std::string& path, std::unique_ptr<FSWritableFile>* file) {
  std::unique_ptr<LogFile> log = std::move(next_);
  if (!log) {
    if (IOStatus status = LogFile::create(path, step_, current_, &log); !status.ok()) return status;
  }
  IOStatus status = log->become_current(path);
  *file = std::move(log);
  return status;
}

IOStatus StoreFiles::NewSequentialFile(const std::string& path, const FileOptions& options,
                                       std::unique_ptr<FSSequentialFile>* file,
                                       IODebugContext* debug) {
  std::unique_ptr<FSSequentialFile> plain;
  IOStatus status = target()->NewSequentialFile(path, options, &plain, debug);
  if (!status.ok()) return status;
  if (!log_number(path)) {
    *file = std::move(plain);
    return status;
  }
  // RocksDB opens the logs that are to be replayed in their order, and no others.
  if (!checked_) status = check_logs_from(path);
  if (!status.ok()) return status;
  if (!checked_->damage.empty()) return IOStatus::Corruption(checked_->damage);
  const auto same = [&path](const CheckedLog& log) { return log.path == path; };
  const auto log = std::find_if(checked_->logs.begin(), checked_->logs.end(), same);
  if (log == checked_->logs.end())
    return IOStatus::Corruption("the log " + path + " appeared after the others");
  *file = std::make_unique<ReadableLog>(std::move(plain), *log);
  return status;
}

// Checks the log at `path` and the newer ones. No exception may pass into RocksDB.
IOStatus StoreFiles::check_logs_from(const std::string& path) try {
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  std::vector<std::string> names;
  if (IOStatus status = target()->GetChildren(directory, {}, &names, nullptr); !status.ok())
    return status;
  std::vector<std::pair<std::uint64_t, std::string>> logs;
  for (const std::string& name : names) {
    const auto number = log_number(directory + name);
    if (number && *number >= *log_number(path)) logs.emplace_back(*number, directory + name);
  }
  std::sort(logs.begin(), logs.end());
  std::vector<std::string> paths;
  for (auto& log : logs) paths.push_back(std::move(log.second));
  checked_ = check_logs(paths);
  return IOStatus::OK();
} catch (const std::exception& error) {
  return IOStatus::IOError(error.what());
}

}  // namespace carillon::queue
