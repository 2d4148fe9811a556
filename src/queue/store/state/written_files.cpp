// The checksums in the MANIFEST, and how a start uses them.

#include "queue/store/state/written_files.h"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <filesystem>

#include "base/crc32c.h"
#include "carillon/queue/store.h"
#include "queue/store/damage/file_checks.h"
#include "queue/store/state/state_options.h"
#include "queue/store/state/stored_bytes.h"

namespace carillon::queue {

namespace {

constexpr const char* kSumName = "carillon-crc32c";

// RocksDB asks for these names.
class Generator final : public rocksdb::FileChecksumGenerator {
 public:
  void Update(const char* data, std::size_t size) override { sum_.add({data, size}); }
  void Finalize() override {}
  std::string GetChecksum() const override { return sum_.encode(); }
  const char* Name() const override { return kSumName; }

 private:
  FileSum sum_;
};

class Factory final : public rocksdb::FileChecksumGenFactory {
 public:
  std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext&) override {
    return std::make_unique<Generator>();
  }
  const char* Name() const override { return kSumName; }
};

std::optional<FileSum> sum_of(const std::string& function, const std::string& value) {
  return function == kSumName ? FileSum::decode(value) : std::nullopt;
}

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename();
}

enum class Seen : std::uint8_t { kAsWritten, kGone, kOther };

// A read error is not reported here: the reader of the body reports it.
Seen look_at(const std::string& path, const WrittenFile& written) {
  const auto files = state_environment()->GetFileSystem();
  std::uint64_t size = 0;
  const rocksdb::Status status = files->GetFileSize(path, {}, &size, nullptr);
  if (status.IsPathNotFound() || status.IsNotFound()) return Seen::kGone;
  if (!status.ok()) return Seen::kAsWritten;
  if (size != written.bytes) return Seen::kOther;
  if (!written.sum) return Seen::kAsWritten;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (!files->NewRandomAccessFile(path, {}, &file, nullptr).ok()) return Seen::kAsWritten;
  std::string buffer(std::min<std::uint64_t>(FileSum::kBeginning, size), '\0');
  rocksdb::Slice bytes;
  if (!file->Read(0, buffer.size(), {}, &bytes, buffer.data(), nullptr).ok())
    return Seen::kAsWritten;
  const bool same = base::crc32c(0, {bytes.data(), bytes.size()}) == written.sum->beginning();
  return same ? Seen::kAsWritten : Seen::kOther;
}

}  // namespace

void FileSum::add(std::string_view bytes) {
  all_ = base::crc32c(all_, bytes);
  if (size_ < kBeginning)
    beginning_ = base::crc32c(beginning_, bytes.substr(0, kBeginning - size_));
  size_ += bytes.size();
}

std::string FileSum::encode() const {
  std::string bytes;
  append_number(bytes, all_);
  append_number(bytes, beginning_);
  return bytes;
}

std::optional<FileSum> FileSum::decode(std::string_view bytes) {
  FileSum sum;
  if (bytes.size() != sizeof sum.all_ + sizeof sum.beginning_) return std::nullopt;
  sum.all_ = number_at<std::uint32_t>(bytes, 0);
  sum.beginning_ = number_at<std::uint32_t>(bytes, sizeof sum.all_);
  return sum;
}

std::shared_ptr<rocksdb::FileChecksumGenFactory> file_sums() {
  return std::make_shared<Factory>();
}

WrittenFiles written_files(rocksdb::DB& database) {
  WrittenFiles written;
  std::vector<rocksdb::ColumnFamilyMetaData> families;
  database.GetAllColumnFamilyMetaData(&families);
  for (const rocksdb::ColumnFamilyMetaData& family : families) {
    for (const rocksdb::LevelMetaData& level : family.levels) {
      for (const rocksdb::SstFileMetaData& table : level.files)
        written[name_of(table.name)] = {
            .bytes = table.size, .sum = sum_of(table.file_checksum_func_name, table.file_checksum)};
    }
    for (const rocksdb::BlobMetaData& blobs : family.blob_files)
      written[name_of(blobs.blob_file_name)] = {
          .bytes = blobs.blob_file_size,
          .sum = sum_of(blobs.checksum_method, blobs.checksum_value)};
  }
  return written;
}

// RocksDB may merge and delete files meanwhile.
std::vector<std::string> look_at_bodies(const std::string& directory, rocksdb::DB& database) {
  std::vector<std::string> lines;
  for (const auto& [name, file] : written_files(database)) {
    if (!name.ends_with(".blob")) continue;
    const std::string path = std::string(directory).append("/").append(name);
    const Seen seen = look_at(path, file);
    if (seen == Seen::kAsWritten) continue;
    if (seen == Seen::kGone) {
      if (!written_files(database).contains(name)) continue;
      lines.push_back("lacks the file " + name + ": jobs whose bodies are in it will be buried");
      continue;
    }
    const FileVerdict verdict =
        verdict_on({.path = path, .bytes = file.bytes, .has_blobs = true, .written = file.sum});
    if (verdict.is_foreign) throw StoreError("has another file " + name + ": " + verdict.fault);
    if (!verdict.fault.empty())
      lines.push_back("has a damaged file " + name + ": " + verdict.fault);
  }
  return lines;
}

}  // namespace carillon::queue
