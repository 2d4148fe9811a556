// Writes each line with one system call, so that threads need no lock.

#include "queue/store/state/warnings_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <tuple>

namespace carillon::queue {

WarningsLog::WarningsLog(const base::Directory& directory)
    : Logger(rocksdb::InfoLogLevel::WARN_LEVEL),
      directory_(directory),
      file_(directory.open("LOG", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}

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
  const std::string text_line = directory_.with_path(std::string(line.data(), size));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return;
  if (status.st_size >= static_cast<off_t>(kLarge)) std::ignore = ::ftruncate(file_.get(), 0);
  std::ignore = ::write(file_.get(), text_line.data(), text_line.size());
}

}  // namespace carillon::queue
