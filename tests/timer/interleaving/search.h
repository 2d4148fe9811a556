// Search: the state of the machine in the current schedule, and the depth-first search over
// schedules.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "timer/interleaving/explorer.h"
#include "timer/interleaving/fiber.h"

namespace carillon::interleaving::detail {

inline constexpr int kMain = -1;
inline constexpr std::size_t kMostStores = 48;   // to one atomic
inline constexpr std::size_t kMostSteps = 1000;  // of one schedule

// The knowledge of a thread: of each atomic, the index of the latest store that it knows; of each
// thread, the latest value of that thread's clock that it knows. Both only grow.
struct Knowledge {
  std::array<std::uint8_t, kMostLocations> stores{};
  std::array<std::uint8_t, kMostThreads> clock{};

  void learn(const Knowledge& other) {
    for (std::size_t i = 0; i < stores.size(); ++i)
      stores[i] = std::max(stores[i], other.stores[i]);
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
};

struct Store {
  std::uint64_t value = 0;
  Knowledge released;  // a thread that acquires this store learns it
};

struct AtomicLocation {
  std::array<Store, kMostStores> stores;
  std::size_t count = 0;
  std::uint8_t seq_cst = 0;  // index of the latest store that a seq_cst access has made or read

  std::size_t last() const { return count - 1; }
};

struct PlainLocation {
  std::uint64_t value = 0;
  int writer = kMain;
  std::uint8_t written = 0;                       // the writer's clock
  std::array<std::uint8_t, kMostThreads> read{};  // each thread's clock, if it has read since; or 0
};

enum class Status : std::uint8_t { kReady, kYielded, kWaiting, kNotified, kDone };

struct Thread {
  Fiber fiber;
  Status status = Status::kReady;
  int waits_at = 0;
  std::uint64_t history = 0;   // a hash of all it has read
  std::size_t read_last = 0;   // the atomic that it has read last
  std::size_t read_store = 0;  // the index of the store that it has read there
  Knowledge knows;
};

struct Event {
  int thread;
  const char* what;
  int location;
  std::uint64_t value;
};

struct Choice {
  std::uint8_t chosen;
  std::uint8_t of;
};

class Search {
 public:
  explicit Search(const Entry& entry) : entry_(entry), program_(entry.size / sizeof(Chunk) + 1) {}

  Report run();

  // --- called by operations
  bool exploring() const { return running_ != kMain; }
  Thread& self() { return threads_[static_cast<std::size_t>(running_)]; }
  std::size_t self_index() const { return static_cast<std::size_t>(running_); }
  AtomicLocation& atomic(int location) { return atomics_[static_cast<std::size_t>(location)]; }
  PlainLocation& plain(int location) { return plains_[static_cast<std::size_t>(location)]; }
  int add_atomic(std::uint64_t value);
  int add_plain(std::uint64_t value);

  // A point at which another thread may go on instead of the one that runs.
  void step();
  void suspend(Status status);
  void yield();
  void notify(int location);
  void see_everything(Thread& thread) const;
  std::size_t choose(std::size_t of);
  void observed(const char* what, int location, std::uint64_t value);
  [[noreturn]] void end_with(std::string fault);
  void fail(const std::string& fault);

 private:
  using Chunk = std::max_align_t;

  static void enter();
  void run_once();
  bool next_path();
  void pick();
  bool can_go_on(const Thread& thread) const;
  bool is_new_state();
  std::uint64_t state() const;
  std::string trace() const;
  void leave_for(Fiber& next);

  const Entry& entry_;
  std::vector<Chunk> program_;  // stays at one address, because programs store addresses
  Fiber main_;
  std::array<Thread, kMostThreads> threads_;
  std::array<AtomicLocation, kMostLocations> atomics_;
  std::array<PlainLocation, kMostLocations> plains_;
  std::size_t atomic_count_ = 0;
  std::size_t plain_count_ = 0;
  int running_ = kMain;
  std::size_t steps_ = 0;
  std::vector<Event> events_;
  bool starting_ = false;
  bool complete_ = false;  // all threads of this schedule have ended

  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::unordered_set<std::uint64_t> seen_;
  Report report_;
};

extern Search* search;  // the current one

}  // namespace carillon::interleaving::detail
