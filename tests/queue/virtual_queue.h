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
#include "carillon/queue/memory_store.h"

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

// Fails while a test wants it, and counts changes.
class FailingStore : public MemoryStore {
 public:
  // What fails now.
  struct Faults {
    bool appends = false;
    bool records = false;    // the reads of them
    bool no_buried = false;  // the buried jobs are lost, but not their count
    JobId story = 0;         // the story of this job is damaged
    JobId record = 0;        // so is the record of this one: scans go around it
  };
  Faults faults;
  // How many jobs all appends have changed.
  std::size_t changed = 0;
  // How often the engine has searched for records.
  mutable std::size_t looks = 0;

  Sequence append(const Changes& changes) override {
    if (faults.appends) throw StoreError("no space left on device");
    changed += changes.jobs.size();
    return MemoryStore::append(changes);
  }
  std::optional<JobRecord> find(JobId id) const override {
    refuse_records();
    if (faults.record != 0 && faults.record == id) throw StoreDamage("the record is damaged");
    return MemoryStore::find(id);
  }
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override {
    refuse_records();
    std::vector<JobRecord> found = MemoryStore::scan_due(tube, from, limit);
    std::erase_if(found, [this](const JobRecord& job) { return job.id == faults.record; });
    return found;
  }
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override {
    refuse_records();
    if (faults.no_buried) return {};
    return MemoryStore::scan_buried(tube, from, limit);
  }
  std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const override {
    refuse_records();
    return MemoryStore::find_key(tube, key);
  }
  std::vector<KeyRecord> scan_ended_keys(UtcMs from, std::size_t limit) const override {
    refuse_records();
    return MemoryStore::scan_ended_keys(from, limit);
  }
  std::vector<Attempt> story(JobId id) const override {
    refuse_records();
    if (faults.story == id) throw StoreDamage("the story is damaged");
    return MemoryStore::story(id);
  }

 private:
  void refuse_records() const {
    ++looks;
    if (faults.records) throw StoreError("input/output error");
  }
};

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
