#include "timer/thread_setup.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "timer/block_pool.h"

namespace carillon::detail {

std::thread start_thread(std::string name, std::function<void()> body) {
  name.resize(std::min<std::size_t>(name.size(), 15));
  // A thread inherits the signal mask of the thread that starts it.
  sigset_t blocked;
  sigset_t before;
  ::sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF})
    ::sigdelset(&blocked, own);
  ::pthread_sigmask(SIG_SETMASK, &blocked, &before);
  struct Restore {
    sigset_t& mask;
    ~Restore() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{before};
  return std::thread([name = std::move(name), body = std::move(body)]() mutable {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    const KeepsBlocks until_it_ends;
    body();
    body = nullptr;
  });
}

}  // namespace carillon::detail
