#include "timer/interleaving/search.h"

#include <cstdlib>
#include <memory>
#include <sstream>
#include <utility>

namespace carillon::interleaving {
namespace detail {

Search* search = nullptr;

namespace {

void mix(std::uint64_t& hash, std::uint64_t value) {
  hash ^= value + 0x9e37'79b9'7f4a'7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51'afd7'ed55'8ccd;
  hash ^= hash >> 32;
}

}  // namespace

Report Search::run() {
  do {
    ++report_.schedules;
    run_once();
  } while (report_.fault.empty() && next_path());
  report_.states = seen_.size();
  return std::move(report_);
}

void Search::run_once() {
  depth_ = steps_ = atomic_count_ = plain_count_ = 0;
  complete_ = false;
  events_.clear();
  entry_.construct(program_.data());
  for (int i = 0; i < entry_.threads; ++i) {
    Thread& thread = threads_[static_cast<std::size_t>(i)];
    thread.fiber.start(enter);
    thread.status = Status::kReady;
    thread.history = 0;
    thread.read_last = thread.read_store = 0;
    thread.knows = Knowledge{};
    thread.knows.clock[static_cast<std::size_t>(i)] = 1;
    see_everything(thread);
  }
  // Each thread runs up to its first operation. Others cannot see what it does before.
  starting_ = true;
  for (running_ = 0; running_ < entry_.threads; ++running_) Fiber::change(main_, self().fiber);
  starting_ = false;
  running_ = kMain;
  if (report_.fault.empty()) pick();
  running_ = kMain;
  if (complete_) entry_.at_end(program_.data());
  entry_.destroy(program_.data());
}

bool Search::next_path() {
  while (!path_.empty() && path_.back().chosen + 1 == path_.back().of) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().chosen;
  return true;
}

void Search::enter() {
  search->entry_.run(search->program_.data(), search->running_);
  search->self().status = Status::kDone;
  search->pick();
}

// Continues with one of the threads that can go on. At the end of the schedule, continues in
// run_once().
void Search::pick() {
  if (starting_) return leave_for(main_);
  if (++steps_ > kMostSteps) return end_with("a schedule does not end");
  std::array<int, kMostThreads> able{};
  std::size_t count = 0;
  bool all_done = true;
  for (int i = 0; i < entry_.threads; ++i) {
    // The running thread is tried first, which saves changes between fibers.
    const int thread = running_ == kMain ? i : (running_ + i) % entry_.threads;
    all_done = all_done && threads_[static_cast<std::size_t>(thread)].status == Status::kDone;
    if (can_go_on(threads_[static_cast<std::size_t>(thread)])) able[count++] = thread;
  }
  if (count == 0) {
    if (!all_done) fail("the threads that have not ended wait for ever");
    complete_ = all_done;
    return leave_for(main_);
  }
  if (depth_ == path_.size() && !is_new_state()) return leave_for(main_);
  const int next = able[choose(count)];
  if (next == running_) return;
  Fiber& fiber = threads_[static_cast<std::size_t>(next)].fiber;
  Fiber& from = running_ == kMain ? main_ : self().fiber;
  running_ = next;
  Fiber::change(from, fiber);
}

void Search::leave_for(Fiber& next) {
  if (running_ != kMain) Fiber::change(self().fiber, next);
}

bool Search::can_go_on(const Thread& thread) const {
  switch (thread.status) {
    case Status::kReady:
    case Status::kNotified:
      return true;
    case Status::kYielded:
      return thread.read_store < atomics_[thread.read_last].last();
    default:
      return false;
  }
}

void Search::see_everything(Thread& thread) const {
  for (std::size_t location = 0; location < atomic_count_; ++location) {
    thread.knows.stores[location] = static_cast<std::uint8_t>(atomics_[location].last());
  }
}

bool Search::is_new_state() {
  return seen_.insert(state()).second;
}

// Returns a hash of the state. It leaves out stores that no thread can read any more, and counts
// the others from the oldest that can be read.
std::uint64_t Search::state() const {
  std::array<std::uint8_t, kMostLocations> oldest{};
  for (std::size_t location = 0; location < atomic_count_; ++location) {
    auto least = static_cast<std::uint8_t>(atomics_[location].last());
    for (int i = 0; i < entry_.threads; ++i) {
      const Thread& thread = threads_[static_cast<std::size_t>(i)];
      if (thread.status != Status::kDone) least = std::min(least, thread.knows.stores[location]);
    }
    oldest[location] = least;
  }
  std::uint64_t hash = 0;
  const auto mix_knowledge = [&](const Knowledge& knows) {
    std::uint64_t word = 0;
    for (std::size_t location = 0; location < atomic_count_; ++location) {
      const std::uint8_t least = oldest[location];
      word = word << 8 | static_cast<std::uint8_t>(std::max(knows.stores[location], least) - least);
      if (location % 8 == 7) mix(hash, std::exchange(word, 0));
    }
    mix(hash, word);
    for (const std::uint8_t clock : knows.clock) word = word << 8 | clock;
    mix(hash, word);
  };
  for (int i = 0; i < entry_.threads; ++i) {
    const Thread& thread = threads_[static_cast<std::size_t>(i)];
    mix(hash, thread.history);
    mix(hash, static_cast<std::uint64_t>(thread.status) << 8 |
                  static_cast<std::uint64_t>(thread.waits_at));
    if (thread.status == Status::kDone) continue;
    mix_knowledge(thread.knows);
    mix(hash, thread.read_last << 8 | (thread.knows.stores[thread.read_last] - thread.read_store));
  }
  for (std::size_t location = 0; location < atomic_count_; ++location) {
    const AtomicLocation& atomic = atomics_[location];
    mix(hash, std::max(atomic.seq_cst, oldest[location]) - oldest[location]);
    for (std::size_t i = oldest[location]; i < atomic.count; ++i) {
      mix(hash, atomic.stores[i].value);
      mix_knowledge(atomic.stores[i].released);
    }
  }
  for (std::size_t location = 0; location < plain_count_; ++location) {
    const PlainLocation& plain = plains_[location];
    mix(hash, plain.value);
    std::uint64_t word = static_cast<std::uint64_t>(plain.writer + 1) << 8 | plain.written;
    for (const std::uint8_t read : plain.read) word = word << 8 | read;
    mix(hash, word);
  }
  return hash;
}

int Search::add_atomic(std::uint64_t value) {
  AtomicLocation& location = atomics_.at(atomic_count_);
  location.stores[0] = {value, {}};
  location.count = 1;
  location.seq_cst = 0;
  return static_cast<int>(atomic_count_++);
}

int Search::add_plain(std::uint64_t value) {
  plains_.at(plain_count_) = PlainLocation{value, kMain, 0, {}};
  return static_cast<int>(plain_count_++);
}

void Search::step() {
  if (exploring()) pick();
}

void Search::suspend(Status status) {
  self().status = status;
  pick();
  self().status = Status::kReady;
}

void Search::yield() {
  Thread& thread = self();
  observed("yield", 0, 0);
  suspend(Status::kYielded);
  see_everything(thread);  // every store becomes visible some time
}

void Search::notify(int location) {
  for (Thread& thread : threads_) {
    if (thread.status == Status::kWaiting && thread.waits_at == location)
      thread.status = Status::kNotified;
  }
}

std::size_t Search::choose(std::size_t of) {
  if (of == 1) return 0;
  if (depth_ == path_.size()) path_.push_back({0, static_cast<std::uint8_t>(of)});
  return path_[depth_++].chosen;
}

void Search::observed(const char* what, int location, std::uint64_t value) {
  events_.push_back({running_, what, location, value});
  if (exploring()) mix(self().history, value);
}

void Search::fail(const std::string& fault) {
  if (report_.fault.empty()) report_.fault = fault + trace();
}

void Search::end_with(std::string fault) {
  fail(fault);
  Fiber::change(self().fiber, main_);
  std::abort();  // never reached: a schedule that has ended does not go on
}

std::string Search::trace() const {
  std::ostringstream text;
  text << "\n  after";
  for (const Event& event : events_) {
    text << "\n    ";
    if (event.thread == kMain) {
      text << "before or after all threads";
    } else {
      text << "thread " << event.thread;
    }
    text << ": " << event.what << " #" << event.location << " 0x" << std::hex << event.value
         << std::dec;
  }
  return text.str();
}

Report explore(const Entry& entry) {
  const auto owner = std::make_unique<Search>(entry);
  search = owner.get();
  Report report = search->run();
  search = nullptr;
  return report;
}

}  // namespace detail

void require(bool holds, const char* what) {
  if (holds) return;
  if (detail::search->exploring()) detail::search->end_with(what);
  detail::search->fail(what);
}

}  // namespace carillon::interleaving
