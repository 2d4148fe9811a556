// Stopwatch: the time that this thread has spent on a CPU. Other programs on the machine lengthen
// the time on the wall clock, but not this time.
#pragma once

#include <time.h>

namespace carillon::bench {

class Stopwatch {
 public:
  double nanoseconds() const { return now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }

  double start_ = now();
};

}  // namespace carillon::bench
