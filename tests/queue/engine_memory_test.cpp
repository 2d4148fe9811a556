// What commands do if memory runs out behind their appends: the process ends, and nobody goes on
// with a memory that is not what the store has.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/job_bulk.h"
#include "carillon/queue/memory_store.h"
#include "queue/allocations.h"

namespace carillon::queue {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr Now kStart{.utc_ns = 1'700'000'000'000 * kMs, .mono_ns = 1'000 * kMs};

// From the next append on, the `failing`th allocation fails.
class ShortStore : public MemoryStore {
 public:
  Sequence append(const Changes& changes) override {
    const Sequence sequence = MemoryStore::append(changes);
    failing_allocation = failing;
    return sequence;
  }
  std::size_t failing = 0;
};

struct World {
  World() : engine(store, {.boot = std::string(36, 'b')}, kStart) {
    engine.watch(worker, "default");
    engine.put(client, kStart, {}, "held");
    engine.put(client, kStart, {}, "held, too");
    engine.put(client, kStart, {.due_in = 1'000}, "near");
    engine.put(client, kStart, {.group = "g"}, "of a group");
    for (JobId id = 1; id <= 2; ++id) engine.reserve_job(worker, kStart, id);
    engine.put(client, kStart, {}, "buried");
    engine.bury_job(kStart, 5);
    engine.set_schedule(kStart, "there", {.body = "x", .every = 60'000});
  }
  ShortStore store;
  Engine engine;
  ClientId client = engine.connect();
  ClientId worker = engine.connect();
  ClientId idle = engine.connect();
};

enum class End { kDone, kDied, kThrew, kOther };

// How a process ends in which the `failing`th allocation behind the command's append fails. If it
// is done, and no allocation has failed, `all` is set.
End end_of(const std::function<void(World&)>& command, std::size_t failing, bool& all) {
  constexpr int kThrew = 3;
  constexpr int kNoneFailed = 4;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);  // what std::terminate says
    auto world = std::make_unique<World>();
    world->store.failing = failing;
    try {
      command(*world);
    } catch (...) {
      ::_exit(kThrew);
    }
    const bool none_failed = failing_allocation > 0;
    failing_allocation = world->store.failing = 0;
    world->engine.check_invariants();
    ::_exit(none_failed ? kNoneFailed : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGABRT ? End::kDied : End::kOther;
  all = WEXITSTATUS(status) == kNoneFailed;
  if (all || WEXITSTATUS(status) == 0) return End::kDone;
  return WEXITSTATUS(status) == kThrew ? End::kThrew : End::kOther;
}

struct Case {
  const char* name;
  std::function<void(World&)> command;
  bool allocates = true;  // behind its append
};

TEST(EngineMemory, ACommandThatIsShortOfMemoryBehindItsAppendEndsTheProcess) {
  const std::vector<Case> cases = {
      {"put", [](World& w) { w.engine.put(w.client, kStart, {}, "x"); }},
      {"put near", [](World& w) { w.engine.put(w.client, kStart, {.due_in = 500}, "x"); }},
      {"put far", [](World& w) { w.engine.put(w.client, kStart, {.due_in = 90'000'000}, "x"); },
       false},
      {"put for a waiting client",
       [](World& w) {
         w.engine.use(w.client, "t");
         w.engine.watch(w.idle, "t");
         w.engine.reserve(w.idle, kStart, {});
         w.engine.put(w.client, kStart, {}, "x");
       }},
      {"put of a group", [](World& w) { w.engine.put(w.client, kStart, {.group = "h"}, "x"); }},
      {"put_all",
       [](World& w) {
         const std::vector<NewJob> jobs(3, {.order = {.group = "h"}, .body = "x"});
         w.engine.put_all(w.client, kStart, jobs);
       }},
      {"release", [](World& w) { w.engine.release(w.worker, kStart, 1, 0, 500); }, false},
      {"release_all",
       [](World& w) {
         const std::vector<JobId> ids = {1, 2};
         w.engine.release_all(w.worker, kStart, ids, 0, 500);
       },
       false},
      {"fail", [](World& w) { w.engine.fail(w.worker, kStart, 1, {.error = "e", .delay = 500}); }},
      {"remove_all",
       [](World& w) {
         const std::vector<JobId> ids = {1, 2, 3};
         w.engine.remove_all(w.worker, kStart, ids);
       },
       false},
      {"patch", [](World& w) { w.engine.patch(kStart, 3, {.due_in = 2'000}); }, false},
      {"kick", [](World& w) { w.engine.kick_job(kStart, 5); }},
      {"reserve a buried job", [](World& w) { w.engine.reserve_job(w.worker, kStart, 5); }},
      {"set_tube",
       [](World& w) { w.engine.set_tube(kStart, "t", {.limits = {.max_running = 1}}); }},
      {"set_group",
       [](World& w) {
         w.engine.set_group(kStart, "default", "h", {.limits = {.max_running = 1}});
       }},
      {"move",
       [](World& w) {
         JobBulk bulk{.action = JobBulk::Action::kMove, .list = {.tube = "default"}};
         bulk.to = "t";
         w.engine.change_jobs(kStart, bulk);
       }},
      {"spread",
       [](World& w) {
         JobBulk bulk{.action = JobBulk::Action::kSpread, .list = {.tube = "default"}};
         bulk.list.filter.due_from = 1'700'000'000'000;
         bulk.list.filter.due_before = bulk.list.filter.due_from + 1'500;
         bulk.over = 86'400'000;
         w.engine.change_jobs(kStart, bulk);
       },
       false},
      {"set_endpoint",
       [](World& w) { w.engine.set_endpoint(kStart, "e", {.url = "http://a/", .tube = "t"}); },
       false},
      {"set_schedule",
       [](World& w) { w.engine.set_schedule(kStart, "s", {.body = "x", .every = 60'000}); }, false},
      {"trigger", [](World& w) { w.engine.trigger_schedule(kStart, "there"); }},
      {"trigger with a token",
       [](World& w) {
         w.engine.trigger_schedule(kStart, "there", {.once = "t", .tells_job = true});
       }},
      {"put_all with a token",
       [](World& w) {
         const std::vector<NewJob> jobs(1, {.order = {.group = "h"}, .body = "x"});
         w.engine.put_all(w.client, kStart, jobs, {.once = "t", .tells_job = true});
       }},
  };
  for (const Case& one : cases) {
    constexpr std::size_t kMost = 100;
    bool all = false;
    std::size_t died = 0;
    for (std::size_t failing = 1; !all && failing < kMost; ++failing) {
      const End end = end_of(one.command, failing, all);
      EXPECT_TRUE(end == End::kDone || end == End::kDied)
          << one.name << ": " << failing << (end == End::kThrew ? " throws" : " ends otherwise");
      died += end == End::kDied ? 1U : 0U;
    }
    EXPECT_TRUE(all) << one.name;
    EXPECT_TRUE(died > 0 || !one.allocates) << one.name;
  }
}

}  // namespace
}  // namespace carillon::queue
