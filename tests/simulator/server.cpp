// The turns of the simulated server (server.h).

#include "simulator/server.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "server/text/calendar.h"
#include "simulator/clock.h"
#include "simulator/manners.h"
#include "simulator/threads.h"
#include "simulator/trace.h"

namespace carillon::simulator {

using queue::Now;
using Wants = server::Protocol::Wants;

namespace {

// As in the event loop, in ns.
constexpr std::int64_t kQuantum = 300'000;
constexpr std::int64_t kRound = 5'000'000;
constexpr std::uint64_t kLineBudget = 1'000'000;
// What a command costs beside the calls of the store.
constexpr std::uint64_t kCommandNs = 1'000;
// A client that acts in the middle of a large body leaves one time in this many.
constexpr std::uint64_t kLeavesInBody = 30;
// A client that asks for one thing at a time is answered within this time of work: up to 12 clients
// have a quantum each.
constexpr std::uint64_t kLongestWait = 4'000'000;

}  // namespace

Server::Server(const ServerOptions& options, HistoryStore& history, Model& model, Random& random)
    : options_(options),
      history_(history),
      model_(model),
      random_(random),
      failed_calls_before_(Disk::mounted()->failed_calls()),
      on_disk_(options.kept
                   ? std::nullopt
                   : std::optional<queue::DiskStore>(std::in_place, kDirectory, options.store)),
      store_(options.kept ? static_cast<queue::Store&>(*options.kept) : *on_disk_),
      reserve_(options.memory_gets_short ? std::optional<server::MemoryReserve>(std::in_place)
                                         : std::nullopt),
      engine_((history.open(store_), history), engine_options(), clocks()),
      bodies_(history),
      service_(
          engine_, history_, bodies_, [this] { return read_clocks(); },
          {.max_job_size = options.max_job_size,
           .max_unsent = 4'000,
           .memory = options.memory,
           .reserve = reserve_ ? &*reserve_ : nullptr},
          server::DiskSpace(kDirectory, options.min_free_disk), on_disk_ ? &*on_disk_ : nullptr),
      line_(kQuantum, kRound),
      commit_(history, options.sync, [](const queue::CommitReport&) {}) {
  model_.restart({.reserved = options.engine.max_reserved,
                  .tubes = options.engine.max_tubes,
                  .bodies = options.memory < SIZE_MAX,
                  .system = options.memory_gets_short,
                  .schedules = options.engine.max_schedule_bytes,
                  .on_disk = on_disk_.has_value()},
                 clocks());
  if (on_disk_) expect_no_checkpoints();
}

Server::~Server() = default;

queue::EngineOptions Server::engine_options() {
  queue::EngineOptions options = options_.engine;
  options.calendar = server::cron_calendar();
  options.refuses_puts = [this] { return service_.takes_no_jobs(); };
  if (reserve_) options.memory_is_short = [this] { return reserve_->is_used(); };
  return options;
}

Model::Excuses Server::excuses() const {
  const bool fails = Disk::mounted()->failed_calls() > failed_calls_before_;
  return {.fails = fails,
          .disk_low = options_.min_free_disk > 0,
          .unordered = fails || options_.memory_gets_short ||
                       options_.engine.max_loaded_per_tube < kManyJobs ||
                       options_.engine.max_loaded < kManyJobs};
}

// --- One turn.

std::uint64_t Server::turn() {
  const std::uint64_t before = steps_++;
  expect_invariants();
  pass_time();
  let_memory_get_short();
  let_clients_act();
  serve_line();
  if (died()) return steps_ - before;
  catch_up();
  if (!died() && !excuses().unordered) model_.expect_nobody_waits_in_vain(clocks());
  expect_no_old_keys();
  expect_no_old_ends();
  expect_no_old_occurrences();
  poll_checkpoint();
  go_on_with_changes();
  if (!once_in(random_, 4)) commit();
  if (once_in(random_, 2)) run_others();
  look_at_store();
  if (!failed_ && !died()) flush_all();
  expect_memory_given_back();
  return steps_ - before;
}

// What the engine keeps in memory agrees with itself and with the store. That reads all of both, so
// it is done now and then, and where reads cannot fail.
void Server::expect_invariants() const {
  constexpr std::uint64_t kRarely = 64;
  if (options_.kept != nullptr && steps_ % kRarely == 0) engine_.check_invariants();
}

// A change of many jobs that goes on without its client. They take turns, as the server has them.
void Server::go_on_with_changes() {
  server::LongChanges& all = service_.long_changes();
  if (died() || !all.has_work() || !history_.has_room()) return;
  const std::uint64_t id = long_changes_.front();
  history_.forget_changed();
  new_times_ = true;
  all.work(read_clocks());
  if (died()) return;
  long_changes_.pop_front();
  const server::LongChange& change = *all.find(id);
  const bool ends = change.ended != 0;
  if (!change.error.empty() && !excuses().fails && !options_.memory_gets_short)
    throw Violation("a change of many jobs has ended: " + change.error);
  model_.judge_long_change(id, ends ? std::optional(change.bulk.changed) : std::nullopt, times_,
                           excuses());
  if (!ends) long_changes_.push_back(id);
}

void Server::pass_time() {
  constexpr std::uint64_t kUs = 1'000;
  constexpr std::uint64_t kMs = 1'000'000;
  const std::uint64_t chance = random_() % 128;
  if (chance < 64 || !line_.empty()) return;
  if (options_.sets_clock && once_in(random_, 200)) return set_wall_clock();
  if (chance < 100) return let_pass(random_() % (500 * kUs));
  if (chance < 116) return let_pass(random_() % (10 * kMs));
  if (chance < 124) {
    const auto wakeup = engine_.next_wakeup();
    const std::uint64_t now = virtual_time().mono_ns;
    if (wakeup && *wakeup > now) let_pass(*wakeup - now);
    return;
  }
  let_pass(random_() % ((chance < 127 ? 3'000 : 200'000) * kMs));
}

void Server::let_pass(std::uint64_t ns) {
  idle_ns_ += ns;
  virtual_time().pass(ns);
}

// As if an allocation had failed.
void Server::let_memory_get_short() {
  if (!reserve_) return;
  if (!reserve_->is_used() && once_in(random_, 64)) std::get_new_handler()();
  if (!reserve_->is_used() || once_in(random_, 16)) service_.renew_reserve();
}

// The next command would find it out, and do all that follows. What that costs is known
// (docs/queue.md#time): the clients do not count it.
void Server::set_wall_clock() {
  constexpr std::int64_t kMoment = 5'000'000'000;
  std::int64_t wrong = random_error(random_);
  // What it has just shown comes again.
  if (once_in(random_, 4))
    wrong = virtual_time().wrong_ns - 1 - static_cast<std::int64_t>(random_() % kMoment);
  virtual_time().set_wrong(wrong);
  trace(0, "(nobody) sets the wall clock, wrong by ns:", std::to_string(virtual_time().wrong_ns));
  model_.clock_was_set(clocks());
  const std::uint64_t before = busy_ns();
  run_engine();
  deliver();
  catch_up();
  idle_ns_ += busy_ns() - before;
}

std::uint64_t Server::busy_ns() const {
  return virtual_time().mono_ns - idle_ns_ - slept_ns();
}

void Server::let_clients_act() {
  if (connections_.size() < options_.clients) {
    connections_.push_back(
        std::make_unique<Connection>(++last_client_, random_manners(random_), service_));
    model_.connect(last_client_);
  }
  for (std::uint64_t acting = 1 + random_() % 3; acting > 0 && !died(); --acting) {
    Connection& connection = *connections_[random_() % connections_.size()];
    const Manners& manners = connection.manners();
    // In the middle of a large body it leaves soon: there are not many of them.
    if (once_in(random_, connection.sends_large_body() ? kLeavesInBody : manners.leaves_in)) {
      if (once_in(random_, 2)) return close(connection);
      connection.end_input();
      model_.end_input(connection.number());
      connection.session().end_of_input();
      deliver();
    }
    const bool waits =
        connection.session().wants() == Wants::kDelivery || connection.large_reply().under_way();
    while (!connection.ended() && !(waits && manners.ahead == 1) &&
           connection.unanswered() < manners.ahead)
      connection.send(connection.talker().next(model_, connection.number(), random_, clocks()));
    arrive(connection);
    join_line(connection);
  }
}

void Server::arrive(Connection& connection) {
  std::size_t most = connection.manners().piece;
  if (connection.sends_large_body()) most = queue::kBodyPiece;
  connection.arrive(most == SIZE_MAX ? SIZE_MAX : 1 + random_() % most, busy_ns());
}

void Server::join_line(Connection& connection) {
  const Wants wants = connection.session().wants();
  const bool has_more = connection.ended() || !connection.input().empty() ||
                        connection.has_used_command() || connection.large_reply().under_way();
  if (wants == Wants::kTurn || wants == Wants::kNothing || (wants == Wants::kInput && has_more) ||
      (wants == Wants::kStore && look_for_room(connection)))
    line_.join(connection);
}

// What appends waits for the disk. The other threads have run now and then, so it cannot be for
// long.
bool Server::look_for_room(Connection& connection) {
  constexpr int kLong = 200;
  const bool has_room = service_.store_has_room();
  if (connection.asks_for_room(has_room, busy_ns()) > kLong && !excuses().fails)
    throw Violation("client " + std::to_string(connection.number()) + " waits for the store");
  return has_room;
}

void Server::close(Connection& connection) {
  trace(connection.number(), "leaves", "");
  line_.leave(connection);
  new_times_ = true;  // its jobs may go to others now
  connection.session().close();
  model_.disconnect(connection.number(), clocks());
  std::erase_if(connections_, [&](const auto& other) { return other.get() == &connection; });
  expect_no_remains();
  deliver();
}

// --- Commands.

// As the event loop does: the line says who is served, and for how long.
void Server::serve_line() {
  const std::uint64_t until = virtual_time().mono_ns + kLineBudget;
  while (virtual_time().mono_ns < until && !died()) {
    auto* const next = static_cast<Connection*>(line_.next());
    if (next == nullptr) return;
    const std::uint64_t began = busy_ns();
    const std::uint64_t stop_at =
        virtual_time().mono_ns + static_cast<std::uint64_t>(next->credit());
    const bool more = serve(*next, stop_at);
    if (died()) return;
    line_.spent(*next, static_cast<std::int64_t>(busy_ns() - began));
    const Wants wants = next->session().wants();
    const bool is_done = next->ended() && !next->large_reply().under_way();
    if (wants == Wants::kNothing || (wants == Wants::kInput && is_done)) {
      close(*next);
    } else if (more) {
      join_line(*next);
    }
  }
}

// Returns true if it has stopped because the time was over.
bool Server::serve(Connection& connection, std::uint64_t until_ns) {
  while (!died() && carry_out(connection, until_ns)) {
    if (virtual_time().mono_ns >= until_ns) return true;
  }
  return connection.session().wants() == Wants::kTurn;
}

// Lets the session use some input, one command at most: the model must see what each of them has
// done. Returns false if the session wants no more now.
bool Server::carry_out(Connection& connection, std::uint64_t until_ns) {
  virtual_time().pass(kCommandNs);
  catch_up();  // so nothing more becomes due before the command
  if (died()) return false;
  const std::size_t offered = connection.rest_of_command();
  history_.forget_changed();
  new_times_ = true;
  const std::size_t used =
      connection.session().receive(connection.input().substr(0, offered), until_ns);
  // A reserve-jobs that has got a body looks up the next job.
  while (hand_out_bodies() && !died() && connection.session().wants() == Wants::kInput)
    connection.session().receive({}, until_ns);
  if (died()) return false;
  connection.use(used);
  if (const auto id = history_.begun()) model_.begin_body(connection.number(), *id);
  const Wants wants = connection.session().wants();
  const bool goes_on = wants == Wants::kTurn || wants == Wants::kStore || wants == Wants::kRoom;
  const bool unfinished = goes_on && !connection.has_new_replies();
  if (unfinished && connection.has_used_command()) {
    model_.judge_part(connection.number(), connection.first_command(), times_, excuses());
  } else {
    finish_commands(connection);
  }
  const bool closed = wants == Wants::kNothing;
  if (closed) look_at_end(connection);
  expect_no_remains();
  connection.session().count_memory();
  deliver();
  return used > 0 && !closed;
}

Now Server::read_clocks() {
  times_.last = clocks();
  if (std::exchange(new_times_, false)) times_.first = times_.last;
  return times_.last;
}

// A body that another thread reads comes before anything else happens: the model must see at once
// what a command has done.
bool Server::hand_out_bodies() {
  if (std::exchange(bodies_.asked, 0) == 0) return false;
  run_others();
  for (const server::BodyThread::Read& read : bodies_.thread.take()) {
    for (const auto& connection : connections_) {
      if (connection->session().client() == read.client) connection->session().body_read(read.body);
    }
  }
  return true;
}

// A reserve-jobs has a body, and looks up the next job.
bool Server::gathers_more(const Connection& connection) const {
  return !died() && !connection.has_new_replies() && connection.session().wants() == Wants::kInput;
}

void Server::look_at_wait(const Connection& connection) {
  const std::uint64_t waited = busy_ns() - connection.arrived_ns();
  longest_wait_ns_ = std::max(longest_wait_ns_, waited);
  if (waited > kLongestWait) {
    throw Violation("client " + std::to_string(connection.number()) + " has waited for " +
                    std::to_string(waited / 1'000) +
                    " us of work before its command was done: " + connection.first_command().bytes);
  }
}

// Does all that is due, and tells who has waited for it. A command does some of it first, too; but
// how much, and who would get a job by that and who by the command itself, could not be told. The
// event loop serves clients between two steps, so they do not count what all steps take.
void Server::catch_up() {
  const auto is_behind = [this] {
    const auto wakeup = engine_.next_wakeup();
    return wakeup && *wakeup <= virtual_time().mono_ns;
  };
  constexpr int kEnough = 100;
  service_.save_space(virtual_time().mono_ns);
  int calls = 0;
  for (; is_behind() && !died() && calls < kEnough; ++calls) {
    const std::uint64_t before = busy_ns();
    run_engine();
    const std::uint64_t took = busy_ns() - before;
    if (took > kLongestWait) throw Violation("a step of the engine takes too long");
    idle_ns_ += took;
    deliver();
  }
  if (calls == kEnough && !excuses().fails) throw Violation("the engine is never done");
  deliver();
}

void Server::run_engine() {
  history_.forget_changed();
  try {
    new_times_ = true;
    engine_.advance(read_clocks());
  } catch (const queue::StoreError& error) {
    if (!excuses().fails && !died())
      throw Violation(std::string("the engine cannot go on: ") + error.what());
  }
  model_.judge_what_was_due(times_);
}

}  // namespace carillon::simulator
