#include "process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gateway {
namespace {

// Standard streams, epoll, timers, the listening socket, and some reserve.
constexpr std::size_t kOtherDescriptors = 64;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::size_t resident_kib() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = soft;
  const auto descriptors = static_cast<std::size_t>(limit.rlim_cur);
  return descriptors - std::min(descriptors, kOtherDescriptors);
}

std::string how_to_raise_the_limit() {
  return "The hard limit of open descriptors is per process. Raise it as root with `ulimit -Hn "
         "200000` in the shell "
         "that\n"
         "starts this, for good in /etc/security/limits.conf (nofile) or a systemd unit "
         "(LimitNOFILE=), up to the\n"
         "system's own (sysctl fs.nr_open, fs.file-max); or share the connections out among "
         "several processes.\n";
}

}  // namespace gateway
