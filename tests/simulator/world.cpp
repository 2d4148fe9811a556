// How servers live and die (world.h).

#include "simulator/world.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "simulator/clock.h"
#include "simulator/disk.h"
#include "simulator/history.h"
#include "simulator/manners.h"
#include "simulator/model.h"
#include "simulator/server.h"
#include "simulator/threads.h"

namespace carillon::simulator {

namespace {

enum class End : std::uint8_t { kStop, kKill, kPowerLoss };

class World {
 public:
  World(std::uint64_t seed, Depth depth, std::uint64_t* at)
      : random_(seed), depth_(depth), at_(at), sets_clock_(once_in(2)), takes_large_(once_in(4)) {
    virtual_time() = {.utc_ns = 1'800'000'000'000'000'000 + random_() % 1'000'000'000,
                      .mono_ns = 1'000'000'000'000 + random_() % 1'000'000'000};
    began_ns_ = virtual_time().mono_ns;
    begin_simulation(seed);
  }

  WorldResult run(std::uint64_t steps) {
    while (result_.steps < steps) live();
    result_.losses = history_.starts_after_loss();
    result_.failed_calls = disk_.failed_calls();
    result_.reads = disk_.reads();
    result_.changes = disk_.changes();
    result_.syncs = disk_.syncs();
    result_.virtual_ms = (virtual_time().mono_ns - began_ns_) / 1'000'000;
    return result_;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool once_in(std::uint64_t many) { return below(many) == 0; }

  ServerOptions random_options() {
    ServerOptions options;
    options.sync = once_in(3)   ? queue::SyncPolicy::every(std::chrono::milliseconds(50))
                   : once_in(3) ? queue::SyncPolicy::os()
                                : queue::SyncPolicy::always();
    options.store = {.recent = std::size_t{16} << (10 + below(4)),
                     .read_cache = 8 << 20,
                     .large_body = 1 << 10,
                     .log_bytes = std::size_t{64} << (10 + below(3)),
                     .log_segment_bytes = std::size_t{16} << (10 + below(3)),
                     .max_open_files = 64,
                     .durable_writes = options.sync.mode == queue::SyncPolicy::Mode::kAlways};
    options.engine.boot = "the only one";  // names the boot of the clocks
    options.store.boot = 1 + result_.power_losses;
    options.sets_clock = sets_clock_;
    options.engine.load_ahead = once_in(2) ? 500 : 60'000;
    if (once_in(8)) options.engine.max_loaded_per_tube = 1 + below(20);
    if (once_in(8)) options.engine.max_loaded = 1 + below(60);
    if (takes_large_) {
      options.max_job_size = kMaxLargeSize;
      // A piece must fit into the log, beside what is being written.
      options.store.recent = std::size_t{64} << (10 + below(5));
      options.store.log_bytes = std::size_t{512} << (10 + below(3));
    }
    options.clients = 1 + below(12);
    options.quick_disk = !once_in(3);
    if (once_in(4)) give_little_memory(options);
    return options;
  }

  void give_little_memory(ServerOptions& options) {
    if (once_in(2)) options.engine.max_reserved = 1 + below(12);
    if (once_in(2)) options.engine.max_tubes = 3 + below(16);
    if (once_in(2)) options.memory = std::size_t{16} << (10 + below(takes_large_ ? 9 : 5));
    if (once_in(4)) options.memory_gets_short = true;
    if (once_in(4)) options.engine.max_loaded = 1 + below(20);
    if (once_in(4)) options.engine.max_schedule_bytes = 1'000 + below(6'000);
  }

  // Faults of the disk, or a small one.
  void trouble(ServerOptions& options) {
    if (once_in(6)) {
      const std::uint32_t rarely = 1 << (6 + below(8));
      Disk::Faults faults;
      if (once_in(2)) faults.reads = rarely;
      if (once_in(2)) faults.writes = rarely;
      if (once_in(2)) faults.syncs = rarely;
      disk_.set_faults(faults, random_());
    }
    disk_.set_capacity(UINT64_MAX);
    if (once_in(6)) {
      disk_.set_capacity(disk_.used_bytes() + (below(1'000) << 10));
      if (once_in(2)) options.min_free_disk = 100 << 10;
    }
  }

  void live() {
    ServerOptions options = random_options();
    kept_.begin_life();
    if (depth_ == Depth::kEngine) options.kept = &kept_;
    const End end = once_in(8) ? End::kStop : once_in(2) ? End::kKill : End::kPowerLoss;
    if (depth_ == Depth::kDisk) trouble(options);
    if (sets_clock_ && once_in(4)) {
      virtual_time().set_wrong(random_error(random_));
      model_.clock_was_set({.utc_ns = virtual_time().utc_ns, .mono_ns = virtual_time().mono_ns});
    }
    const std::uint64_t failed_before = disk_.failed_calls();
    if (end != End::kStop && once_in(2)) disk_.stop_after(1 + below(once_in(4) ? 60 : 3'000));
    if (result_.starts == 0 && once_in(4)) disk_.stop_after(1 + below(8));  // dies very early
    ++result_.starts;
    tell_of(options, end);
    try {
      Server server(options, history_, model_, random_);
      may_lose_told_ = options.sync.mode != queue::SyncPolicy::Mode::kAlways;
      serve(server, end);
    } catch (const queue::StoreError& error) {
      if (!disk_.stopped() && disk_.failed_calls() == failed_before)
        throw Violation(std::string("the store cannot be opened: ") + error.what());
    }
    die(end);
  }

  void tell_of(const ServerOptions& options, End end) const {
    if (std::getenv("CARILLON_TRACE") == nullptr) return;
    constexpr const char* kEnds[] = {"SIGTERM", "SIGKILL", "a power loss"};
    constexpr const char* kModes[] = {"always", "50ms", "os"};
    std::printf("start %llu, --sync %s, at most %zu loaded, until %s; %llu calls have failed\n",
                static_cast<unsigned long long>(result_.starts),
                kModes[static_cast<int>(options.sync.mode)], options.engine.max_loaded_per_tube,
                kEnds[static_cast<int>(end)],
                static_cast<unsigned long long>(disk_.failed_calls()));
  }

  void serve(Server& server, End end) {
    const std::uint64_t until = result_.steps + 1 + below(once_in(2) ? 300 : 3'000);
    while (result_.steps < until && !disk_.stopped() && !server.failed()) {
      result_.steps += server.turn();
      if (at_ != nullptr) *at_ = result_.steps;
    }
    result_.digest = 31 * result_.digest + server.digest();
    result_.longest_wait_ns = std::max(result_.longest_wait_ns, server.longest_wait_ns());
    if (end == End::kStop && !disk_.stopped() && !server.failed()) server.stop();
    if (server.failed()) ++result_.failures;
    disk_.stop();  // what is done from now on, a dead process would not have done
  }

  void die(End end) {
    if (end == End::kPowerLoss) {
      ++result_.power_losses;
      if (may_lose_told_) history_.lose_power_unless_synced();
      disk_.lose_power(random_);
    } else {
      ++(end == End::kStop ? result_.stops : result_.kills);
      disk_.end_process();
    }
  }

  Random random_;
  const Depth depth_;
  std::uint64_t* at_;
  const bool sets_clock_;
  const bool takes_large_;  // bodies of several pieces
  Disk& disk_ = Disk::mount();
  KeptStore kept_;
  HistoryStore history_;
  Model model_{history_};
  WorldResult result_;
  std::uint64_t began_ns_ = 0;
  bool may_lose_told_ = false;  // by a power loss: the last server that served did not sync at once
};

}  // namespace

WorldResult run_world(std::uint64_t seed, std::uint64_t steps, Depth depth, std::uint64_t* at) {
  return World(seed, depth, at).run(steps);
}

}  // namespace carillon::simulator
