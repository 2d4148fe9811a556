// Replies of the simulated server, from the moment when they are made until they have left
// (server.h).

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "simulator/requests.h"
#include "simulator/server.h"
#include "simulator/trace.h"

namespace carillon::simulator {

using Wants = server::Protocol::Wants;

void Server::finish_commands(Connection& connection) {
  const std::string replies = connection.new_replies();
  std::string_view rest = replies;
  if (connection.large_reply().under_way() && !rest.empty()) go_on_with_body(connection, rest);
  // Without a command, only the engine may have done something: while a body went on.
  if (!connection.has_used_command()) model_.judge_what_was_due(times_);
  while (connection.has_used_command()) {
    const Wants wants = connection.session().wants();
    const Command& next = connection.first_command();
    const bool may_wait = next.verb == Verb::kReserve || next.verb == Verb::kReserveJobs ||
                          next.verb == Verb::kCheckpoint;
    const bool waits = may_wait && wants == Wants::kDelivery && rest.empty();
    std::optional<Reply> reply;
    if (!waits && next.verb != Verb::kQuit) {
      const std::string_view begun = rest;
      reply = take_reply_of(connection, rest);
      // A list is made in steps.
      const bool goes_on = !begun.empty() && (wants == Wants::kTurn || wants == Wants::kRoom);
      if (!reply && goes_on) {
        connection.keep(begun);
        return model_.judge_part(connection.number(), next, times_, excuses());
      }
      // A large body ends in `replies`, and the next command has only begun.
      const bool has_begun = begun.empty() && (wants == Wants::kTurn || wants == Wants::kStore);
      if (!reply && has_begun && !replies.empty())
        return model_.judge_part(connection.number(), next, times_, excuses());
      if (!reply) throw Violation("'" + next.bytes + "' has no reply: " + replies);
    }
    ++steps_;
    if (connection.manners().ahead == 1) look_at_wait(connection);
    const Command command = connection.take_command();
    if (waits && command.verb == Verb::kCheckpoint) checkpoint_from_ = history_.last();
    trace(connection.number(), "sent", shown(command));
    if (reply)
      trace(connection.number(), "got", connection.speaks_http() ? reply->text : reply->line);
    model_.judge(connection.number(), command, reply, times_, excuses());
    if (reply && reply->word == "ACCEPTED")
      long_changes_.push_back(number_in(object_of(*reply), "id"));
    if (reply) note_reply(connection, command, *reply, rest.size());
  }
  if (!rest.empty() && connection.session().wants() != Wants::kNothing)
    throw Violation("a reply without a command: " + std::string(rest));
}

// A reply with a large body is judged when its first line is there. What follows must be the body
// as it is stored now, whatever becomes of the job meanwhile.
std::optional<Reply> Server::take_reply_of(Connection& connection, std::string_view& bytes) {
  if (connection.speaks_http()) return take_answer(bytes);
  auto head = take_large_head(bytes);
  if (!head) return take_reply(bytes);
  Reply& reply = head->reply;
  const auto job = history_.state().jobs.find(reply.number);
  if (job == history_.state().jobs.end() || job->second.body.size() != head->size)
    throw Violation("there is no job with such a body: " + std::string(reply.line));
  reply.text = job->second.body;
  connection.large_reply().begin(job->second.record, job->second.body, reply.word == "RESERVED");
  connection.large_reply().take(bytes);
  return reply;
}

void Server::go_on_with_body(Connection& connection, std::string_view& bytes) {
  LargeReply& reply = connection.large_reply();
  if (reply.holds()) model_.judge_more_of_body(connection.number(), reply.job(), times_);
  reply.take(bytes);
}

// The session has closed itself.
void Server::look_at_end(const Connection& connection) {
  const LargeReply& reply = connection.large_reply();
  if (reply.under_way())
    model_.judge_cut(connection.number(), reply.job(), reply.body(), reply.holds(), times_,
                     excuses());
  model_.disconnect(connection.number(), times_.last);
}

void Server::note_reply(Connection& connection, const Command& command, const Reply& reply,
                        std::size_t behind) {
  digest_ = 31 * digest_ + std::hash<std::string_view>()(reply.line);
  queue::JobId given = reply.word == "INSERTED" ? reply.number : 0;
  if (command.verb == Verb::kTriggerSchedule && reply.word == "OK")
    given = number_in(object_of(reply), "id");
  std::uint64_t append = append_of(connection, command, reply);
  const auto tells_of_no_change = [this](const Reply& of) {
    return of.word == "OUT_OF_MEMORY" || of.word == "INTERNAL_ERROR" || was_changed_since(of);
  };
  if (reply.word == "JOBS" || reply.word == "ALREADY") {
    for (const Reply& job : replies_in(reply.text)) {
      if (tells_of_no_change(job)) continue;
      append = std::max(append, history_.changed_at(job.number));
      if (job.word == "INSERTED") given = std::max(given, job.number);
    }
  }
  if (tells_of_no_change(reply)) append = 0;
  connection.note(behind, append, given);
}

// A cancel may be asked for when a client has got the job, and while its body is read. The reply
// does not say so. (A job whose cancel was asked for before goes to no client.)
bool Server::was_changed_since(const Reply& reply) const {
  return reply.word == "RESERVED" && model_.cancel_is_asked(reply.number);
}

// Returns the last append that the reply reports, apart from replies about many jobs.
std::uint64_t Server::append_of(const Connection& connection, const Command& command,
                                const Reply& reply) const {
  std::uint64_t append = history_.changed_at(command.id);
  constexpr std::array<std::string_view, 9> kNameJob = {"RESERVED",    "FOUND",     "INSERTED",
                                                        "EXISTS",      "REPLACED",  "PATCHED",
                                                        "IS_RESERVED", "CANCELLED", "CANCEL_ASKED"};
  const bool names_job = std::find(kNameJob.begin(), kNameJob.end(), reply.word) != kNameJob.end();
  if (names_job && reply.number != 0) append = history_.changed_at(reply.number);
  if (reply.word == "NOT_FOUND" && !command.key.empty())
    append = history_.key_changed_at(
        command.by_http ? command.tube : model_.tube_in_use(connection.number()), command.key);
  if (reply.word == "KICKED" && !history_.changed().empty()) append = history_.last();
  const bool has_changed = reply.word == "OK" || reply.word == "ACCEPTED";
  if (changes_many(command.verb) && has_changed)
    append = model_.take_append_of_many(connection.number());
  if (command.verb == Verb::kSetTube && reply.word == "OK") append = history_.last();
  if (!command.schedule.empty()) append = history_.schedule_changed_at(command.schedule);
  const bool is_put_off = reply.word == "DRAINING" || reply.word == "TOO_FAST";
  if (!command.once.empty() && reply.word != "REFUSED" && !is_put_off)
    append = history_.key_changed_at({}, command.once);
  return append;
}

void Server::deliver() {
  for (auto all = engine_.take_deliveries(); !all.empty() && !died();
       all = engine_.take_deliveries()) {
    const Model::Times times = times_;  // when these waits have ended
    for (const queue::Delivery& delivery : all) {
      ++steps_;
      const auto found =
          std::find_if(connections_.begin(), connections_.end(), [&](const auto& connection) {
            return connection->session().client() == delivery.client;
          });
      if (found == connections_.end()) continue;
      Connection& connection = **found;
      history_.forget_changed();
      new_times_ = true;
      connection.session().deliver(delivery);
      hand_out_bodies();  // and then the engine may do what is due
      while (gathers_more(connection)) {
        connection.session().receive({}, UINT64_MAX);
        hand_out_bodies();
      }
      if (died()) return;
      model_.judge_what_was_due(times_);
      const std::string replies = connection.new_replies();
      std::string_view rest = replies;
      const auto reply = take_reply_of(connection, rest);
      if (!reply || !rest.empty()) throw Violation("a wait ends with '" + replies + "'");
      trace(connection.number(), "waited and got", reply->line);
      model_.judge_end(connection.number(), *reply, times, excuses());
      note_reply(connection, {}, *reply, 0);
      connection.session().count_memory();
      join_line(connection);
    }
  }
}

// --- Leaving.

void Server::commit() {
  using Waiting = queue::GroupCommit::Waiting;
  const queue::Sequence last = engine_.last_sequence();
  if (last == requested_) return;
  requested_ = last;
  let_pass(options_.quick_disk ? 20'000 : 5'000'000);
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
  // It was the client that let its replies lie.
  if (connection.session().wants() == Wants::kRoom) connection.goes_on(busy_ns());
  connection.leave(part, [this, written](const Connection::Note& note) {
    history_.told(note.append, written);
    model_.told_id(note.given);
  });
  connection.session().count_memory();
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
