// The file LOG in a data directory: RocksDB's warnings and errors, for whoever has to find out what
// happened.
//
// RocksDB's own log writes much more, and aborts the process when it cannot (in Debian's build, on
// a full disk). This one drops what it cannot write.
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstddef>
#include <string>

namespace carillon::queue {

class WarningsLog final : public rocksdb::Logger {
 public:
  // Goes on with the LOG in `directory`, or begins a new one when that has become large.
  explicit WarningsLog(const std::string& directory);
  ~WarningsLog() override;

  using Logger::Logv;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override;
  void Logv(const char* format, va_list arguments) override;
  void LogHeader(const char*, va_list) override {}  // the options, at length

 private:
  static constexpr std::size_t kLarge = 1 << 20;

  int file_;
};

}  // namespace carillon::queue
