// Tables are verified by RocksDB. It has nothing that verifies a file of large bodies.

#include "queue/store/damage/file_checks.h"

#include <rocksdb/cache.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/crc32c.h"
#include "queue/store/state/blob_format.h"
#include "queue/store/state/no_wait_files.h"
#include "queue/store/state/state_options.h"

namespace carillon::queue {

namespace {

using rocksdb::Status;

constexpr std::size_t kReadAhead = 256 << 10;

// Opening the table reads its index and filters, which the other step leaves out.
Status verify_table(const std::string& path) {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.block_cache = rocksdb::NewLRUCache(1 << 20);
  rocksdb::Options options;
  options.env = state_environment();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::SstFileReader reader(options);
  if (Status status = reader.Open(path); !status.ok()) return status;
  rocksdb::ReadOptions reading;
  reading.readahead_size = kReadAhead;
  reading.fill_cache = false;
  return reader.VerifyChecksum(reading);
}

class BlobFile {
 public:
  Status open(const std::string& path) {
    const auto files = state_environment()->GetFileSystem();
    Status status = files->NewRandomAccessFile(path, {}, &file_, nullptr);
    if (status.ok()) status = files->GetFileSize(path, {}, &size_, nullptr);
    return status;
  }

  Status verify() {
    std::string_view head;
    if (Status status = read(0, kBlobHead, head); !status.ok()) return status;
    if (head != blob_head()) return Status::Corruption("its head is not as it was written");
    std::uint64_t at = kBlobHead;
    while (at < size_) {
      if (size_ - at == kBlobFoot) return verify_foot(at);
      if (Status status = verify_record(at); !status.ok()) return status;
    }
    return Status::OK();
  }

 private:
  Status damaged(const std::string& what, std::uint64_t at) const {
    return Status::Corruption(what + " is not as it was written, offset " + std::to_string(at));
  }

  Status verify_foot(std::uint64_t at) {
    std::string_view foot;
    if (Status status = read(at, kBlobFoot, foot); !status.ok()) return status;
    return is_blob_foot(foot) ? Status::OK() : damaged("its foot", at);
  }

  Status verify_record(std::uint64_t& at) {
    std::string_view bytes;
    if (Status status = read(at, kBlobRecordHead, bytes); !status.ok()) return status;
    const std::string head(bytes);
    const auto key = number_at<std::uint64_t>(head, 0);
    const auto value = number_at<std::uint64_t>(head, 8);
    if (masked(base::crc32c(0, head.substr(0, 24))) != number_at<std::uint32_t>(head, 24) ||
        key > size_ || value > size_ || at + kBlobRecordHead + key + value > size_)
      return damaged("the head of a body", at);
    std::uint32_t crc = 0;
    const std::uint64_t end = at + kBlobRecordHead + key + value;
    for (std::uint64_t from = at + kBlobRecordHead; from < end; from += bytes.size()) {
      if (Status status = read(from, std::min<std::uint64_t>(kReadAhead, end - from), bytes);
          !status.ok())
        return status;
      crc = base::crc32c(crc, bytes);
    }
    if (masked(crc) != number_at<std::uint32_t>(head, 28)) return damaged("a body", at);
    at = end;
    return Status::OK();
  }

  // `bytes` holds until the next call.
  Status read(std::uint64_t at, std::size_t size, std::string_view& bytes) {
    if (at < from_ || at + size > from_ + buffer_.size()) {
      buffer_.resize(2 * kReadAhead);
      rocksdb::Slice got;
      Status status = file_->Read(at, buffer_.size(), {}, &got, buffer_.data(), nullptr);
      if (!status.ok()) {
        buffer_.clear();
        return status;
      }
      buffer_.resize(got.size());
      from_ = at;
      if (got.size() < size) return Status::Corruption("it has become shorter");
    }
    bytes = std::string_view(buffer_).substr(at - from_, size);
    return Status::OK();
  }

  std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  std::uint64_t size_ = 0;
  std::uint64_t from_ = 0;
  std::string buffer_;
};

Status verify(const StateFile& file) {
  if (!file.has_blobs) return verify_table(file.path);
  BlobFile blobs;
  Status status = blobs.open(file.path);
  return status.ok() ? blobs.verify() : status;
}

// All bytes at once: if they are as they were written, so is every checksum in them.
Status compare(const std::string& path, const FileSum& written) {
  const auto files = state_environment()->GetFileSystem();
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  Status status = files->NewRandomAccessFile(path, {}, &file, nullptr);
  std::string buffer(kReadAhead, '\0');
  FileSum sum;
  rocksdb::Slice bytes("", 1);
  for (std::uint64_t at = 0; status.ok() && !bytes.empty(); at += bytes.size()) {
    status = file->Read(at, buffer.size(), {}, &bytes, buffer.data(), nullptr);
    if (status.ok()) sum.add({bytes.data(), bytes.size()});
  }
  if (!status.ok()) return status;
  return sum == written ? Status::OK() : Status::Corruption("not as written");
}

}  // namespace

FileVerdict verdict_on(const StateFile& file) {
  const FreshRead fresh;
  Status status = Status::OK();
  if (file.written) {
    status = compare(file.path, *file.written);
    if (status.IsCorruption()) status = compare(file.path, *file.written);
    if (status.ok() || status.IsAborted() || status.IsPathNotFound()) return {};
  }
  const bool is_other = status.IsCorruption();
  status = verify(file);
  if (status.IsCorruption() || status.IsIOError()) status = verify(file);
  if (status.ok() && is_other)
    return {.fault =
                "it is whole, but not the file that was written: it is of a copy of the "
                "directory, or of another time",
            .is_foreign = true};
  if (status.ok() || status.IsAborted() || status.IsPathNotFound()) return {};
  return {.fault = status.ToString(), .unreadable = status.IsIOError()};
}

}  // namespace carillon::queue
