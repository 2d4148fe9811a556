// What RocksDB wrote to each of its files, so that another file in its place is noticed.
//
//   database_options.file_checksum_gen_factory = file_sums();
//   ...
//   for (const auto& [name, file] : written_files(database)) ...
//
// The checksums inside a file say that its bytes are as they were written, not that this is the
// right file. A file from a copy of the directory passes, if it has as many bytes, and RocksDB then
// hands out the wrong bodies. So the MANIFEST has a checksum of each file. RocksDB verifies
// something like it for tables, when it opens them, and nothing for large bodies.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/file_checksum.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::queue {

// The checksums of a file's bytes, and of its beginning alone, which a start has time to read.
class FileSum {
 public:
  static constexpr std::size_t kBeginning = 4096;  // bytes

  void add(std::string_view bytes);
  std::uint32_t all() const { return all_; }
  std::uint32_t beginning() const { return beginning_; }
  bool operator==(const FileSum& other) const {
    return all_ == other.all_ && beginning_ == other.beginning_;
  }

  std::string encode() const;
  static std::optional<FileSum> decode(std::string_view bytes);

 private:
  std::uint32_t all_ = 0;
  std::uint32_t beginning_ = 0;
  std::uint64_t size_ = 0;
};

struct WrittenFile {
  std::uint64_t bytes = 0;
  std::optional<FileSum> sum;
};
using WrittenFiles = std::map<std::string, WrittenFile>;  // by name

std::shared_ptr<rocksdb::FileChecksumGenFactory> file_sums();
WrittenFiles written_files(rocksdb::DB& database);

// Compares the files of large bodies in the directory with what was written, by their sizes and
// beginnings. Returns a line for each file that is gone or damaged. Throws StoreError, with a line
// that names the file, if a file is whole but not the one that was written.
std::vector<std::string> look_at_bodies(const std::string& directory, rocksdb::DB& database);

}  // namespace carillon::queue
