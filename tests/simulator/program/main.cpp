// The simulator: worlds of a server that loses power, is killed, runs out of disk, and has clients
// of all kinds, while a model judges every reply (model.h, history.h).
//
//   carillon_simulator --steps 1000000                  // worlds with the seeds 1, 2, 3, ...
//   carillon_simulator --seed 17 --world 20000          // the world of seed 17 alone, again
//   carillon_simulator --seed random --steps 1000000 --jobs 4 --progress
//   carillon_simulator --engine --steps 1000000         // with a store in memory (world.h)
//
// Each world is a process of its own, and the same seed gives the same world; the first one is run
// twice to show it. Up to --jobs worlds run at a time. When one fails, its seed is printed, with
// the command that shows it again, and nothing follows. With CARILLON_TRACE=1 in the environment
// that command prints all that happens.

#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <string_view>
#include <vector>

#include "simulator/world.h"

namespace {

using carillon::simulator::Depth;
using carillon::simulator::run_world;
using carillon::simulator::WorldResult;
using Count = unsigned long long;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t steps = 0;       // in all worlds together; 0: one world
  std::uint64_t world = 20'000;  // steps of one world
  std::uint64_t jobs = 1;        // worlds at a time
  bool progress = false;
  bool verbose = false;
  Depth depth = Depth::kDisk;
};

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: carillon_simulator [--engine] [--seed N|random] [--steps N] [--world N] "
               "[--jobs N] [--progress] [--verbose]\n");
  std::exit(2);
}

std::uint64_t number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) usage();
  return number;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--progress") {
      options.progress = true;
      continue;
    }
    if (name == "--engine") {
      options.depth = Depth::kEngine;
      continue;
    }
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (i + 1 == count) usage();
    const std::string_view value = arguments[++i];
    if (name == "--seed") {
      options.seed = value == "random" ? std::random_device()() : number(value);
    } else if (name == "--steps") {
      options.steps = number(value);
    } else if (name == "--world") {
      options.world = number(value);
    } else if (name == "--jobs") {
      options.jobs = std::max<std::uint64_t>(1, number(value));
    } else {
      usage();
    }
  }
  if (options.steps == 0) options.steps = options.world;
  return options;
}

// Threads of a world run one at a time, so one arena is enough; and it keeps its memory until it
// ends, which spares most page faults: each memtable of RocksDB takes a megabyte.
void keep_memory() {
  constexpr int kMost = 1 << 30;
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, kMost);
  ::mallopt(M_TRIM_THRESHOLD, kMost);
  ::mallopt(M_TOP_PAD, 16 << 20);
}

// Runs a world in this process, and passes its result on.
[[noreturn]] void be_world(std::uint64_t seed, std::uint64_t steps, Depth depth, int results) {
  constexpr unsigned kHangs = 3'600;  // seconds; a world takes a few, more at idle priority
  ::alarm(kHangs);
  std::uint64_t at = 0;
  int code = 0;
  try {
    const WorldResult result = run_world(seed, steps, depth, &at);
    if (::write(results, &result, sizeof result) != sizeof result) code = 1;
  } catch (const std::exception& why) {
    std::fprintf(stderr, "\nsimulator: the world of seed %llu fails at step %llu:\n  %s\n",
                 static_cast<Count>(seed), static_cast<Count>(at), why.what());
    code = 1;
  }
  std::fflush(stderr);
  ::_exit(code);  // threads that wait for ever belong to the world
}

constexpr std::size_t kNone = CPU_SETSIZE;

// A world that runs.
struct Child {
  std::uint64_t seed;
  std::uint64_t steps;
  Depth depth;
  std::size_t processor;  // kNone: any
  pid_t process;
  int results;
};

// Returns one that no other world uses, or kNone. The threads of a world take turns: on one
// processor they take less time than on several.
std::size_t free_processor(const std::vector<Child>& others) {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return kNone;
  for (const Child& other : others) CPU_CLR(other.processor, &all);  // which kNone does not change
  const auto here = static_cast<std::size_t>(::sched_getcpu());
  if (CPU_ISSET(here, &all)) return here;
  std::size_t processor = 0;
  while (processor < kNone && !CPU_ISSET(processor, &all)) ++processor;
  return processor;
}

void stay_on(std::size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

Child start(std::uint64_t seed, std::uint64_t steps, Depth depth,
            const std::vector<Child>& others) {
  const std::size_t processor = free_processor(others);
  int results[2];
  if (::pipe(results) != 0) {
    std::perror("simulator: pipe");
    std::exit(1);
  }
  const pid_t process = ::fork();
  if (process == 0) {
    if (processor != kNone) stay_on(processor);
    be_world(seed, steps, depth, results[1]);
  }
  ::close(results[1]);
  return {.seed = seed,
          .steps = steps,
          .depth = depth,
          .processor = processor,
          .process = process,
          .results = results[0]};
}

// Waits until one of the worlds has ended, and takes it out of them. Returns its result. If it has
// not held, says so and exits.
WorldResult wait_for_one(std::vector<Child>& children, const char* program) {
  int status = 0;
  const pid_t ended = ::waitpid(-1, &status, 0);
  const auto found = std::find_if(children.begin(), children.end(),
                                  [ended](const Child& child) { return child.process == ended; });
  if (found == children.end()) {
    std::fprintf(stderr, "simulator: cannot run a world\n");
    std::exit(1);
  }
  const Child child = *found;
  children.erase(found);
  WorldResult result;
  const bool whole = ::read(child.results, &result, sizeof result) == sizeof result;
  ::close(child.results);
  if (whole && status == 0) return result;

  for (const Child& other : children) ::kill(other.process, SIGKILL);
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "\nsimulator: the world of seed %llu is ended by signal %s\n",
                 static_cast<Count>(child.seed), ::strsignal(WTERMSIG(status)));
  }
  std::fprintf(stderr, "simulator: to see it again: %s%s --seed %llu --world %llu\n", program,
               child.depth == Depth::kEngine ? " --engine" : "", static_cast<Count>(child.seed),
               static_cast<Count>(child.steps));
  std::exit(1);
}

void add(WorldResult& sum, const WorldResult& one) {
  sum.steps += one.steps;
  sum.starts += one.starts;
  sum.power_losses += one.power_losses;
  sum.kills += one.kills;
  sum.stops += one.stops;
  sum.failures += one.failures;
  sum.losses += one.losses;
  sum.failed_calls += one.failed_calls;
  sum.reads += one.reads;
  sum.changes += one.changes;
  sum.syncs += one.syncs;
  sum.virtual_ms += one.virtual_ms;
  sum.longest_wait_ns = std::max(sum.longest_wait_ns, one.longest_wait_ns);
}

void tell(const WorldResult& of) {
  std::printf(
      "%llu steps: %llu starts, %llu power losses, %llu kills, %llu stops, %llu failed stores, "
      "%llu starts after a loss of what nobody knew, %llu failed calls, %llu reads, %llu changes "
      "and %llu syncs of the disk, the longest wait for a turn %.2f ms, %.1f virtual hours\n",
      static_cast<Count>(of.steps), static_cast<Count>(of.starts),
      static_cast<Count>(of.power_losses), static_cast<Count>(of.kills),
      static_cast<Count>(of.stops), static_cast<Count>(of.failures), static_cast<Count>(of.losses),
      static_cast<Count>(of.failed_calls), static_cast<Count>(of.reads),
      static_cast<Count>(of.changes), static_cast<Count>(of.syncs),
      static_cast<double>(of.longest_wait_ns) / 1e6,
      static_cast<double>(of.virtual_ms) / 3'600'000);
}

// Runs the world twice. Exits if the second one is another one.
WorldResult run_twice(std::uint64_t seed, std::uint64_t steps, Depth depth, const char* program) {
  std::vector<Child> children = {start(seed, steps, depth, {})};
  const WorldResult result = wait_for_one(children, program);
  children.push_back(start(seed, steps, depth, {}));
  const WorldResult again = wait_for_one(children, program);
  if (again == result) return result;
  std::fprintf(stderr, "simulator: the world of seed %llu is another one the second time\n",
               static_cast<Count>(seed));
  tell(result);
  tell(again);
  std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  using Clock = std::chrono::steady_clock;
  const Options options = parse(count, arguments);
  spdlog::set_level(spdlog::level::off);
  keep_memory();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("simulator: seeds from %llu on\n", static_cast<Count>(options.seed));
  const auto began = Clock::now();
  auto told = began;
  std::uint64_t seed = options.seed;
  std::uint64_t left = options.steps - std::min(options.world, options.steps);
  WorldResult sum = run_twice(seed, options.steps - left, options.depth, arguments[0]);
  if (options.verbose) tell(sum);
  std::vector<Child> children;
  while (left > 0 || !children.empty()) {
    for (; left > 0 && children.size() < options.jobs; left -= children.back().steps)
      children.push_back(start(++seed, std::min(options.world, left), options.depth, children));
    const WorldResult result = wait_for_one(children, arguments[0]);
    if (options.verbose) tell(result);
    add(sum, result);
    if (options.progress && Clock::now() - told > std::chrono::seconds(10)) {
      told = Clock::now();
      const double s = std::chrono::duration<double>(told - began).count();
      std::printf("%5.1f %%, %.0f steps/s, seed %llu, ",
                  100 * static_cast<double>(sum.steps) / static_cast<double>(options.steps),
                  static_cast<double>(sum.steps) / s, static_cast<Count>(seed));
      tell(sum);
    }
  }
  tell(sum);
  std::printf("in %.1f s\n", std::chrono::duration<double>(Clock::now() - began).count());
  return 0;
}
