// The turns of the simulated server (server.h).

#include "simulator/server.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

#include "simulator/clock.h"
#include "simulator/threads.h"

namespace carillon::simulator {

using queue::Now;
using Wants = server::beanstalk::Session::Wants;

namespace {

constexpr const char* kDirectory = "/simulated/data";

// Returns true once in `many` times.
bool once_in(Random& random, std::uint64_t many) {
  return random() % many == 0;
}

Now clocks() {
  return {.utc_ns = virtual_time().utc_ns, .mono_ns = virtual_time().mono_ns};
}

// With CARILLON_TRACE in the environment all that happens is printed.
void trace(ClientNumber client, std::string_view what, std::string_view of) {
  static const bool wanted = std::getenv("CARILLON_TRACE") != nullptr;
  if (!wanted) return;
  std::printf("%.6f client %llu %.*s %.*s\n",
              static_cast<double>(virtual_time().mono_ns) / 1'000'000,
              static_cast<unsigned long long>(client), static_cast<int>(what.size()), what.data(),
              static_cast<int>(std::min(of.find('\r'), of.size())), of.data());
}

Manners random_manners(Random& random) {
  Manners manners{.role = static_cast<Role>(random() % kRoles)};
  if (manners.role == Role::kVandal && random() % 2 == 0) manners.role = Role::kWorker;
  switch (random() % 8) {
    case 0:
      manners.ahead = 1 + random() % 50;
      break;
    case 1:
      manners.piece = 1;
      break;
    case 2:
      manners.piece = 1 + random() % 100;
      manners.ahead = 3;
      break;
    case 3:
      manners.reads = random() % 4 != 0;
      manners.ahead = 10;
      break;
    default:
      break;
  }
  return manners;
}

}  // namespace

Server::Server(const ServerOptions& options, HistoryStore& history, Model& model, Random& random)
    : options_(options),
      history_(history),
      model_(model),
      random_(random),
      failed_calls_before_(Disk::mounted()->failed_calls()),
      store_(kDirectory, options.store),
      engine_((history.open(store_), history), options.engine, clocks()),
      service_(
          engine_, history_, no_reads_, [this] { return last_read_ = clocks(); },
          {.max_job_size = kMaxJobSize, .max_unsent = 4'000},
          server::DiskSpace(kDirectory, options.min_free_disk), &store_),
      commit_(history, options.sync, [](const queue::CommitReport&) {}) {
  model_.restart();
}

Server::~Server() = default;

void Server::NoReads::read(queue::ClientId, queue::JobId) {
  throw Violation("a body of the simulated disk is not at hand");
}

Model::Excuses Server::excuses() const {
  const bool fails = Disk::mounted()->failed_calls() > failed_calls_before_;
  return {.fails = fails,
          .disk_low = options_.min_free_disk > 0,
          .unordered = fails || options_.engine.max_loaded_per_tube < kManyJobs};
}

// --- One turn.

std::uint64_t Server::turn() {
  const std::uint64_t before = steps_++;
  pass_time();
  let_clients_act();
  if (died()) return steps_ - before;
  catch_up();
  if (!died() && !excuses().unordered) model_.expect_nobody_waits_in_vain(clocks());
  if (!once_in(random_, 4)) commit();
  if (once_in(random_, 2)) run_others();
  look_at_store();
  if (!failed_ && !died()) flush_all();
  return steps_ - before;
}

void Server::pass_time() {
  constexpr std::uint64_t kUs = 1'000;
  constexpr std::uint64_t kMs = 1'000'000;
  VirtualTime& time = virtual_time();
  const std::uint64_t chance = random_() % 128;
  if (chance < 64) return;
  if (chance < 100) return time.pass(random_() % (500 * kUs));
  if (chance < 116) return time.pass(random_() % (10 * kMs));
  if (chance < 124) {
    const auto wakeup = engine_.next_wakeup();
    if (wakeup && *wakeup > time.mono_ns) time.pass(*wakeup - time.mono_ns);
    return;
  }
  time.pass(random_() % ((chance < 127 ? 3'000 : 200'000) * kMs));
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
    if (once_in(random_, manners.leaves_in)) {
      if (once_in(random_, 2)) return close(connection);
      connection.end_input();
      model_.end_input(connection.number());
      connection.session().end_of_input();
      deliver();
    }
    while (!connection.ended() && connection.unanswered() < manners.ahead)
      connection.send(connection.talker().next(model_, connection.number(), random_, clocks()));
    connection.arrive(manners.piece == SIZE_MAX ? SIZE_MAX : 1 + random_() % manners.piece);
    process(connection);
    const bool done = connection.ended() && connection.session().wants() == Wants::kInput;
    if (done || connection.session().wants() == Wants::kNothing) return close(connection);
  }
}

void Server::close(Connection& connection) {
  trace(connection.number(), "leaves", {});
  const std::uint64_t work = history_.work();
  connection.session().close();
  most_work_ = std::max(most_work_, history_.work() - work);
  model_.disconnect(connection.number());
  std::erase_if(connections_, [&](const auto& other) { return other.get() == &connection; });
  deliver();
}

// --- Commands.

void Server::process(Connection& connection) {
  while (!died() && carry_out(connection)) {
  }
}

// Lets the session use some input, one command at most: the model is to see what each of them has
// done. Returns false if the session wants no more now.
bool Server::carry_out(Connection& connection) {
  if (model_.anybody_waits()) catch_up();
  const std::size_t offered = connection.rest_of_command();
  history_.forget_changed();
  const std::uint64_t work = history_.work();
  const std::size_t used =
      connection.session().receive(std::string_view(connection.input()).substr(0, offered));
  most_work_ = std::max(most_work_, history_.work() - work);
  if (died()) return false;
  connection.use(used);
  finish_commands(connection);
  const bool closed = connection.session().wants() == Wants::kNothing;
  if (closed) model_.disconnect(connection.number());
  deliver();
  return used > 0 && !closed;
}

void Server::finish_commands(Connection& connection) {
  const std::string replies = connection.new_replies();
  std::string_view rest = replies;
  while (connection.has_used_command()) {
    const Command command = connection.take_command();
    ++steps_;
    const bool waits = command.verb == Verb::kReserve &&
                       connection.session().wants() == Wants::kDelivery && rest.empty();
    std::optional<Reply> reply;
    if (!waits && command.verb != Verb::kQuit) {
      reply = take_reply(rest);
      if (!reply) throw Violation("'" + command.bytes + "' has no reply: " + replies);
    }
    trace(connection.number(), "sent", command.bytes);
    if (reply) trace(connection.number(), "got", reply->line);
    model_.judge(connection.number(), command, reply, last_read_, excuses());
    if (reply) note_reply(connection, command, *reply, rest.size());
  }
  if (!rest.empty() && connection.session().wants() != Wants::kNothing)
    throw Violation("a reply without a command: " + std::string(rest));
}

void Server::note_reply(Connection& connection, const Command& command, const Reply& reply,
                        std::size_t behind) {
  digest_ = 31 * digest_ + std::hash<std::string_view>()(reply.line);
  std::uint64_t append = history_.changed_at(command.id);
  const bool job = reply.word == "RESERVED" || reply.word == "FOUND";
  if (job || reply.word == "INSERTED") append = history_.changed_at(reply.number);
  if (reply.word == "KICKED" && !history_.changed().empty()) append = history_.last();
  connection.note(behind, append, reply.word == "INSERTED" ? reply.number : 0);
}

// Does what is due, and tells who has waited for it. A command does what is due first, too; but who
// would get a job by that, and who by the command itself, could not be told apart.
void Server::catch_up() {
  const auto wakeup = engine_.next_wakeup();
  if (wakeup && *wakeup <= virtual_time().mono_ns) run_engine();
  deliver();
}

void Server::run_engine() {
  try {
    engine_.advance(clocks());
  } catch (const queue::StoreError& error) {
    if (!excuses().fails && !died())
      throw Violation(std::string("the engine cannot go on: ") + error.what());
  }
}

void Server::deliver() {
  for (auto all = engine_.take_deliveries(); !all.empty() && !died();
       all = engine_.take_deliveries()) {
    for (const queue::Delivery& delivery : all) {
      ++steps_;
      const auto found =
          std::find_if(connections_.begin(), connections_.end(), [&](const auto& connection) {
            return connection->session().client() == delivery.client;
          });
      if (found == connections_.end()) continue;
      Connection& connection = **found;
      connection.session().deliver(delivery);
      const std::string replies = connection.new_replies();
      std::string_view rest = replies;
      const auto reply = take_reply(rest);
      if (!reply || !rest.empty()) throw Violation("a wait ends with '" + replies + "'");
      trace(connection.number(), "waited and got", reply->line);
      model_.judge_end(connection.number(), *reply, clocks(), excuses());
      note_reply(connection, {}, *reply, 0);
    }
  }
}

// --- Replies.

void Server::commit() {
  using Waiting = queue::GroupCommit::Waiting;
  const queue::Sequence last = engine_.last_sequence();
  if (last == requested_) return;
  requested_ = last;
  virtual_time().pass(options_.quick_disk ? 20'000 : 5'000'000);
  commit_.request(last, once_in(random_, 2) ? Waiting::kOne : Waiting::kSeveral);
}

void Server::look_at_store() {
  if (failed_ || died()) return;
  if (history_.failure().empty() && !commit_.failed()) return;
  failed_ = true;
  if (!excuses().fails) throw Violation("the store has failed: " + history_.failure());
}

void Server::flush_all() {
  for (const auto& connection : connections_) flush(*connection);
}

void Server::flush(Connection& connection) {
  if (!connection.manners().reads && !once_in(random_, 1'000)) return;
  const auto bytes = connection.session().replies().sendable(commit_.acknowledgeable());
  if (bytes.empty()) return;
  const std::size_t part = once_in(random_, 8) ? 1 + random_() % bytes.size() : bytes.size();
  const bool written = options_.sync.mode != queue::SyncPolicy::Mode::kAlways;
  connection.leave(part, [this, written](const Connection::Note& note) {
    history_.told(note.append, written);
    model_.told_id(note.given);
  });
}

void Server::stop() {
  engine_.close();
  commit_.request(engine_.last_sequence());
  commit_.close();
  look_at_store();
  if (failed_ || died()) return;
  flush_all();
  history_.closed();
}

}  // namespace carillon::simulator
