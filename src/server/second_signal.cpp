// A handler that counts (second_signal.h).
#include "server/second_signal.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "carillon/require.h"

namespace carillon::server {
namespace {

using Handler = void (*)(int);

std::atomic<bool> came{false};
std::atomic<Handler> first_handler{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<Handler>::is_always_lock_free);

constexpr int kOfShells = 128;  // the exit code of a process that a signal has ended, without it

}  // namespace

extern "C" {

// Calls only what POSIX allows in a handler.
static void on_stop_signal(int signal) {
  if (!came.exchange(true)) return first_handler.load()(signal);
  ::signal(signal, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  // In the first process of a container, a signal without a handler ends nothing.
  ::_exit(kOfShells + signal);
}

}  // extern "C"

void end_at_second_signal() {
  came = false;
  for (const int signal : {SIGTERM, SIGINT}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == on_stop_signal) continue;  // another loop of this process
    CARILLON_REQUIRE(action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN, signal);
    first_handler = action.sa_handler;
    action.sa_handler = on_stop_signal;
    ::sigaction(signal, &action, nullptr);
  }
}

void count_as_first_signal() {
  came = true;
}

}  // namespace carillon::server
