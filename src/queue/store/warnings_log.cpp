// Writes each line with one system call, so that threads need no lock.

#include "queue/store/warnings_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <tuple>

namespace carillon::queue {

WarningsLog::WarningsLog(const std::string& directory) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {
  const std::string path = directory + "/LOG";
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

WarningsLog::~WarningsLog() {
  if (file_ >= 0) ::close(file_);
}

void WarningsLog::Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) {
  if (level >= GetInfoLogLevel() && level < rocksdb::InfoLogLevel::HEADER_LEVEL)
    Logv(format, arguments);
}

void WarningsLog::Logv(const char* format, va_list arguments) {
  std::array<char, 2'048> line;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::size_t size = std::strftime(line.data(), line.size(), "%FT%TZ ", &utc);
  const int text = std::vsnprintf(line.data() + size, line.size() - size, format, arguments);
  if (text > 0) size = std::min(size + static_cast<std::size_t>(text), line.size() - 1);
  line[size++] = '\n';
  struct stat status {};
  if (::fstat(file_, &status) != 0) return;
  if (status.st_size >= static_cast<off_t>(kLarge)) std::ignore = ::ftruncate(file_, 0);
  std::ignore = ::write(file_, line.data(), size);
}

}  // namespace carillon::queue
