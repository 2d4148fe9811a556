// A file system that does not delete one file (kept_manifest.h).

#include "queue/store/state/kept_manifest.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace carillon::queue {

namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class KeepingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit KeepingFileSystem(const std::shared_ptr<rocksdb::FileSystem>& below)
      : FileSystemWrapper(below) {}
  // RocksDB asks for this name. NOLINTNEXTLINE(readability-identifier-naming)
  static const char* kClassName() { return "carillon-manifest"; }
  const char* Name() const override { return kClassName(); }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    if (may_be_current(path)) return IOStatus::OK();
    return target()->DeleteFile(path, options, debug);
  }

 private:
  // Returns true also if CURRENT cannot be read.
  bool may_be_current(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = std::string_view(path).substr(slash + 1);
    if (!name.starts_with("MANIFEST-")) return false;
    std::string current;
    const IOStatus status =
        rocksdb::ReadFileToString(target(), path.substr(0, slash + 1) + "CURRENT", &current);
    return !status.ok() || current.substr(0, current.find('\n')) == name;
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> keep_manifest(
    const std::shared_ptr<rocksdb::FileSystem>& below) {
  return std::make_shared<KeepingFileSystem>(below);
}

}  // namespace carillon::queue
