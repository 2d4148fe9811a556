// Keeps a thread off the processor of another that it works for.
//
// Why: where the scheduler sees no shared cache (many virtual machines), it leaves a woken thread
// on the processor of the thread that woke it, even if another is idle. There the woken thread
// delays the one that it was to relieve.
//
// Thread safety: one thread.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <thread>

namespace carillon::queue {

class Apart {
 public:
  Apart() {
    known_ = ::sched_getaffinity(0, sizeof allowed_, &allowed_) == 0 && CPU_COUNT(&allowed_) > 1;
  }

  // From now on `helper` runs on any processor that this one may run on but the one where it is
  // now. A few ns if it is where it was at the last call. What the system does not allow is not
  // done.
  void keep_off_here(std::thread& helper) {
    const int here = known_ ? ::sched_getcpu() : -1;
    if (here < 0 || here == kept_off_) return;
    cpu_set_t others = allowed_;
    CPU_CLR(static_cast<unsigned>(here), &others);
    if (::pthread_setaffinity_np(helper.native_handle(), sizeof others, &others) == 0)
      kept_off_ = here;
  }

 private:
  cpu_set_t allowed_{};
  bool known_ = false;
  int kept_off_ = -1;
};

}  // namespace carillon::queue
