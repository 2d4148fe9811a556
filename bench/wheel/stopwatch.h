// Stopwatch: the time this thread has spent on a CPU. What else the machine runs lengthens the wall
// clock, not this.
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
