// An engine on a virtual clock and a store in memory, which can fail, with short methods for what
// tests do most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/job_listing.h"
#include "queue/failing_store.h"

namespace carillon::queue {

inline constexpr Millis kSecond = 1'000;
inline constexpr Millis kMinute = 60 * kSecond;
inline constexpr Millis kHour = 60 * kMinute;
inline constexpr Millis kDay = 24 * kHour;

inline constexpr std::uint32_t kDelayed = bit_of(JobState::kDelayed);
inline constexpr std::uint32_t kBuried = bit_of(JobState::kBuried);

// By how much the wall clock is set.
struct Step {
  static constexpr std::int64_t kSecond = 1'000;
  static constexpr std::int64_t kHour = 3'600 * kSecond;
  static constexpr std::int64_t kDay = 24 * kHour;
  static constexpr std::int64_t kTenYears = 3'652 * kDay;
};

inline constexpr std::uint64_t kMs = 1'000'000;  // ns

// Carries out the whole of a kick, and returns how many jobs were kicked.
inline std::uint64_t kick_all(Engine& engine, ClientId client, Now now, std::uint64_t bound) {
  Kick kick{.bound = bound};
  while (!kick.done) engine.kick(client, now, kick);
  return kick.kicked;
}

// Carries out the whole of a peek at the delayed jobs.
inline std::optional<JobView> peek_delayed(Engine& engine, ClientId client, Now now) {
  DelayedPeek peek;
  while (!peek.done) engine.peek_delayed(client, now, peek);
  return peek.found;
}

class VirtualQueue {
 public:
  explicit VirtualQueue(EngineOptions options = {}) : options_(std::move(options)) {
    options_.boot = "boot";
    start();
  }

  Engine& engine() { return *engine_; }
  FailingStore& store() { return store_; }
  Now now() const { return now_; }
  UtcMs utc() const { return now_.utc_ns / kMs; }

  // Moves both clocks on, and the engine too.
  void pass(Millis ms) {
    now_.utc_ns += ms * kMs;
    now_.mono_ns += ms * kMs;
    engine_->advance(now_);
  }
  // Sets the wall clock alone, by `ms` forward, or back if negative. The engine learns of it with
  // the next command.
  void step_wall_clock(std::int64_t ms) { now_.utc_ns += static_cast<std::uint64_t>(ms) * kMs; }
  // Moves both clocks on; the engine learns of it with the next command.
  void add_ns(std::uint64_t ns) {
    now_.utc_ns += ns;
    now_.mono_ns += ns;
  }

  // The process dies, and `down` ms later another one takes over the same store.
  void restart(Millis down = 0) {
    engine_.reset();
    add_ns(down * kMs);
    start();
  }
  // The machine dies, and `down` ms later another engine takes over the same store. The wall clock
  // is wrong by `error` ms then.
  void crash(Millis down = 0, std::int64_t error = 0) {
    engine_.reset();
    now_.utc_ns += down * kMs + static_cast<std::uint64_t>(error) * kMs;
    now_.mono_ns = 5 * kMs;
    options_.boot += "'";
    start();
  }

  JobId put(ClientId client, std::string_view body, PutOrder order = {}) {
    return engine_->put(client, now_, order, body).id;
  }
  // Returns the body of the job that a reserve without waiting gives, or a word that says why it
  // gives no job.
  std::string reserve(ClientId client) {
    std::optional<Delivery> got = engine_->reserve(client, now_, 0);
    while (!got) {  // expired jobs stand before the others
      engine_->advance(now_);
      for (const Delivery& delivery : engine_->take_deliveries())
        delivery.client == client ? got.emplace(delivery) : others_.emplace_back(delivery);
    }
    return word(*got);
  }
  // Lets the client wait. REQUIRES: it gets nothing at once.
  void wait(ClientId client, std::optional<Millis> timeout = {}) {
    if (engine_->reserve(client, now_, timeout))
      throw std::logic_error("the client did not have to wait");
  }
  // Returns the deliveries since the last call, each as "client:word".
  std::vector<std::string> deliveries() {
    std::vector<std::string> words;
    std::vector<Delivery> all = std::exchange(others_, {});
    for (const Delivery& delivery : engine_->take_deliveries()) all.push_back(delivery);
    for (const Delivery& delivery : all)
      words.push_back(std::to_string(delivery.client) + ":" + word(delivery));
    return words;
  }

  // Returns the body of a job that a peek has found.
  std::string body(const std::optional<JobView>& job) { return store_.body(job.value().body_id); }

  std::string word(const Delivery& delivery) {
    switch (delivery.kind) {
      case Delivery::Kind::kReserved:
        return store_.body(delivery.job.body_id);
      case Delivery::Kind::kDeadlineSoon:
        return "DEADLINE_SOON";
      case Delivery::Kind::kTimedOut:
        return "TIMED_OUT";
    }
    return "?";
  }

 private:
  void start() { engine_ = std::make_unique<Engine>(store_, options_, now_); }

  EngineOptions options_;
  FailingStore store_;
  Now now_{.utc_ns = 1'700'000'000'000 * kMs, .mono_ns = 1'000 * kMs};
  std::unique_ptr<Engine> engine_;
  std::vector<Delivery> others_;  // that have come while one client reserved
};

}  // namespace carillon::queue
