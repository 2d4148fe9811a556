// Passes the right to run from thread to thread, and replaces the functions that wait.
//
// The main thread gives the right to another one and waits until that one gives it back. It does so
// when it waits itself, and in run_others(). So the others never give it to each other.

#include "simulator/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "simulator/clock.h"
#include "simulator/next_function.h"

namespace carillon::simulator {

namespace {

constexpr std::uint64_t kNever = UINT64_MAX;

void futex(std::atomic<int>& word, int operation, int value) {
  next<"syscall">(::syscall)(SYS_futex, &word, operation, value, nullptr);
}

// What a thread waits for; it may run again when that is there, or the time.
struct Thread {
  std::atomic<int> may_run = 0;
  bool done = false;
  pid_t id = 0;      // as the kernel has it
  pid_t number = 1;  // as the code is told
  bool waits = false;
  const void* awaited = nullptr;  // a condition, a mutex or a futex; null: only the time
  std::uint64_t until_mono = kNever;
  std::uint64_t until_utc = kNever;
  pthread_t name{};
  void* (*run)(void*) = nullptr;
  void* argument = nullptr;

  bool can_run() const {
    return !done &&
           (!waits || virtual_time().mono_ns >= until_mono || virtual_time().utc_ns >= until_utc);
  }
  void pause() {
    while (may_run.exchange(0) == 0) futex(may_run, FUTEX_WAIT_PRIVATE, 0);
  }
  void resume() {
    may_run.store(1);
    futex(may_run, FUTEX_WAKE_PRIVATE, 1);
  }
};

struct Threads {
  Thread main;
  std::vector<std::unique_ptr<Thread>> others;
  std::minstd_rand random;   // for the order of the threads
  std::minstd_rand numbers;  // apart from it: a library may ask for more the first time
  std::uint64_t slept_ns = 0;
  pid_t last_number = 1;
};

Threads& threads() {
  static auto* const all = new Threads;  // never destroyed: threads may outlive main()
  return *all;
}

thread_local Thread* self = nullptr;

bool is_main() {
  return self == &threads().main;
}

// The main thread lets another one run until that one waits. What the libraries do at a thread's
// end, with locks of theirs, is waited for as well: else it would go on beside the main thread.
void let_run(Thread& other) {
  other.waits = false;
  other.resume();
  self->pause();
  if (!other.done) return;
  while (::tgkill(next<"getpid">(::getpid)(), other.id, 0) == 0) ::sched_yield();
}

// One of the others lets the main thread run.
void give_back() {
  threads().main.resume();
  self->pause();
}

bool run_each_once() {
  Threads& all = threads();
  std::erase_if(all.others, [](const auto& thread) { return thread->done; });
  std::vector<Thread*> ready;
  for (const auto& thread : all.others) {
    if (thread->can_run()) ready.push_back(thread.get());
  }
  std::shuffle(ready.begin(), ready.end(), all.random);
  for (Thread* const thread : ready) {
    if (thread->can_run()) let_run(*thread);
  }
  return !ready.empty();
}

// Nobody can run: lets the time pass until somebody can.
void let_time_pass() {
  VirtualTime& time = virtual_time();
  std::uint64_t least = kNever;
  const auto look = [&](const Thread& thread) {
    if (thread.done) return;
    if (thread.until_mono != kNever) least = std::min(least, thread.until_mono - time.mono_ns);
    if (thread.until_utc != kNever) least = std::min(least, thread.until_utc - time.utc_ns);
  };
  look(threads().main);
  for (const auto& thread : threads().others) look(*thread);
  if (least == kNever) {
    std::fprintf(stderr, "simulator: deadlock: all threads wait for each other\n");
    std::abort();
  }
  time.pass(least);
  threads().slept_ns += least;
}

// Waits until `awaited` is signalled or the time has come. May return before: every caller checks
// whether it has what it waited for.
void wait(const void* awaited, std::uint64_t until_mono, std::uint64_t until_utc) {
  self->waits = true;
  self->awaited = awaited;
  self->until_mono = until_mono;
  self->until_utc = until_utc;
  if (!is_main()) {
    give_back();
  } else {
    while (!run_each_once() && !self->can_run()) let_time_pass();
  }
  self->waits = false;
  self->awaited = nullptr;
  self->until_mono = self->until_utc = kNever;
}

void signal(const void* awaited) {
  const auto wake = [awaited](Thread& thread) {
    if (thread.waits && thread.awaited == awaited) thread.waits = false;
  };
  wake(threads().main);
  for (const auto& thread : threads().others) wake(*thread);
}

void lock(pthread_mutex_t* mutex) {
  while (pthread_mutex_trylock(mutex) == EBUSY) {
    if (is_main()) {
      if (!run_each_once()) wait(mutex, kNever, kNever);
    } else {
      give_back();  // it is not waiting: it tries again when it runs next
    }
  }
}

int wait_for_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, std::uint64_t until_mono,
                       std::uint64_t until_utc) {
  pthread_mutex_unlock(mutex);
  wait(condition, until_mono, until_utc);
  lock(mutex);
  const VirtualTime& time = virtual_time();
  return time.mono_ns >= until_mono || time.utc_ns >= until_utc ? ETIMEDOUT : 0;
}

std::uint64_t ns_of(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kNsPerS +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_for(std::uint64_t ns) {
  const std::uint64_t until = virtual_time().mono_ns + ns;
  while (virtual_time().mono_ns < until) wait(nullptr, until, kNever);
}

void* run_thread(void* argument) {
  self = static_cast<Thread*>(argument);
  self->id = next<"gettid">(::gettid)();
  self->pause();
  void* const result = self->run(self->argument);
  self->done = true;
  signal(self);
  self = nullptr;
  threads().main.resume();
  return result;
}

}  // namespace

void begin_simulation(std::uint64_t seed) {
  // Looked up before two threads could do so at the same instant.
  next<"syscall">(::syscall);
  next<"gettid">(::gettid);
  self = &threads().main;
  threads().random.seed(static_cast<std::minstd_rand::result_type>(seed));
  threads().numbers.seed(static_cast<std::minstd_rand::result_type>(seed));
}

void run_others() {
  while (run_each_once()) {
  }
}

std::uint64_t slept_ns() {
  return threads().slept_ns;
}

bool in_simulation() {
  return self != nullptr;
}

std::uint32_t random_number() {
  return static_cast<std::uint32_t>(threads().numbers());
}

void may_switch() {
  if (self == nullptr || is_main()) return;
  if (threads().random() % 4 == 0) give_back();
}

}  // namespace carillon::simulator

using carillon::simulator::kNever;
using carillon::simulator::next;
using carillon::simulator::next_for_condition;
using carillon::simulator::ns_of;
using carillon::simulator::self;

extern "C" {

int pthread_create(pthread_t* name, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  if (self == nullptr)
    return next<"pthread_create">(::pthread_create)(name, attributes, run, argument);
  auto thread = std::make_unique<carillon::simulator::Thread>();
  thread->run = run;
  thread->argument = argument;
  thread->number = ++carillon::simulator::threads().last_number;
  const int error = next<"pthread_create">(::pthread_create)(
      name, attributes, carillon::simulator::run_thread, thread.get());
  thread->name = *name;
  if (error == 0) carillon::simulator::threads().others.push_back(std::move(thread));
  return error;
}

int pthread_join(pthread_t name, void** result) {
  if (self != nullptr) {
    const auto& others = carillon::simulator::threads().others;
    const auto found = std::find_if(others.begin(), others.end(), [name](const auto& thread) {
      return !thread->done && pthread_equal(thread->name, name) != 0;
    });
    const carillon::simulator::Thread* const thread = found == others.end() ? nullptr : &**found;
    while (thread != nullptr && std::any_of(others.begin(), others.end(), [&](const auto& other) {
             return other.get() == thread && !other->done;
           })) {
      carillon::simulator::wait(thread, kNever, kNever);
    }
  }
  return next<"pthread_join">(::pthread_join)(name, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (self != nullptr) {
    carillon::simulator::lock(mutex);
    return 0;
  }
  const int error = pthread_mutex_trylock(mutex);
  if (error != EBUSY) return error;
  return next<"pthread_mutex_lock">(::pthread_mutex_lock)(mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (self != nullptr)
    return carillon::simulator::wait_for_condition(condition, mutex, kNever, kNever);
  return next_for_condition<"pthread_cond_wait">(::pthread_cond_wait)(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (self != nullptr)
    return carillon::simulator::wait_for_condition(condition, mutex, kNever, ns_of(*until));
  return next_for_condition<"pthread_cond_timedwait">(::pthread_cond_timedwait)(condition, mutex,
                                                                                until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (self != nullptr) {
    const bool utc = clock == CLOCK_REALTIME;
    return carillon::simulator::wait_for_condition(condition, mutex, utc ? kNever : ns_of(*until),
                                                   utc ? ns_of(*until) : kNever);
  }
  return next<"pthread_cond_clockwait">(::pthread_cond_clockwait)(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (self != nullptr) {
    carillon::simulator::signal(condition);
    return 0;
  }
  return next_for_condition<"pthread_cond_signal">(::pthread_cond_signal)(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (self != nullptr) {
    carillon::simulator::signal(condition);
    return 0;
  }
  return next_for_condition<"pthread_cond_broadcast">(::pthread_cond_broadcast)(condition);
}

// Semaphores and atomics of the C++ library wait and wake by this call.
// It reads more arguments than some callers give, as the one of the C library does.
[[gnu::no_sanitize_address]] long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  if (self != nullptr && number == SYS_futex) {
    const auto operation = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
    const auto* const word = reinterpret_cast<const int*>(a[0]);
    if (operation == FUTEX_WAKE) {
      carillon::simulator::signal(word);
      return 0;
    }
    if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) {
      if (*word == static_cast<int>(a[2])) carillon::simulator::wait(word, kNever, kNever);
      return 0;
    }
  }
  return next<"syscall">(::syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

pid_t gettid() noexcept {
  return self != nullptr ? self->number : next<"gettid">(::gettid)();
}

int nanosleep(const timespec* wanted, timespec* left) {
  if (self == nullptr) {
    return next<"nanosleep">(::nanosleep)(wanted, left);
  }
  carillon::simulator::sleep_for(ns_of(*wanted));
  return 0;
}

int usleep(useconds_t us) {
  if (self == nullptr) {
    return next<"usleep">(::usleep)(us);
  }
  carillon::simulator::sleep_for(std::uint64_t{us} * 1'000);
  return 0;
}
}
