// Usage: the CPU time that the process has used so far, and how often its threads went to sleep.
#pragma once

#include <sys/resource.h>
#include <time.h>

namespace carillon::bench {

struct Usage {
  double cpu_ns = 0;
  // Voluntary context switches of all threads but the calling one. Each ends in a wake-up.
  double sleeps = 0;

  static Usage now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    rusage all{};
    rusage own{};
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own);
    return {static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec),
            static_cast<double>(all.ru_nvcsw - own.ru_nvcsw)};
  }

  friend Usage operator-(const Usage& a, const Usage& b) {
    return {a.cpu_ns - b.cpu_ns, a.sleeps - b.sleeps};
  }
};

}  // namespace carillon::bench
