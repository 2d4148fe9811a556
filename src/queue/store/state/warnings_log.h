// The file LOG in a data directory: RocksDB's warnings and errors, for the person who has to find
// out what happened.
//
// RocksDB's own logger writes much more, and Debian's build of it aborts the process if it cannot
// write, for example on a full disk. This one drops a line that it cannot write.
//
// Thread safety: any thread may log.
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstddef>

#include "base/directory.h"
#include "base/file_descriptor.h"

namespace carillon::queue {

class WarningsLog final : public rocksdb::Logger {
 public:
  // Appends to the LOG in `directory`, which must outlive this. A LOG of kLarge bytes begins anew.
  explicit WarningsLog(const base::Directory& directory);

  using Logger::Logv;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override;
  void Logv(const char* format, va_list arguments) override;
  void LogHeader(const char*, va_list) override {}  // drops the long list of options

 private:
  static constexpr std::size_t kLarge = 1 << 20;

  const base::Directory& directory_;
  const base::FileDescriptor file_;
};

}  // namespace carillon::queue
