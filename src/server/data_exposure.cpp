// data_exposure(), by stat() (data_exposure.h).
#include "server/data_exposure.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace carillon::server {

std::string data_exposure(const std::string& directory) {
  struct stat entry {};
  if (::stat(directory.c_str(), &entry) != 0 || (entry.st_mode & 0077) == 0) return {};
  return fmt::format("{} has mode {:03o}: other users may read the jobs", directory,
                     entry.st_mode & 0777u);
}

}  // namespace carillon::server
