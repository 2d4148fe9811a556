// The lines of the protocol, with random arguments.

#include "simulator/talker.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "simulator/requests.h"
#include "simulator/talker_parts.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

using queue::JobId;
using queue::Millis;

Command put(Random& random, queue::Now now, std::string body) {
  Command put{.verb = Verb::kPut};
  put.priority = random_priority(random);
  put.ttr = 1'000 * one_of(random, std::array<std::uint64_t, 5>{0, 1, 1, 3, 120});
  put.body = std::move(body);
  const std::uint64_t way = below(random, 4);
  std::string when;
  if (way == 0) {
    put.delay = below(random, 2) * below(random, 3'000);
    when = "put-ms " + number(put.priority) + " " + number(put.delay) + " " + number(put.ttr);
  } else if (way == 1) {
    put.due_at = now.utc_ns / 1'000'000 + below(random, 200'000) - 10'000;
    when = "put-at " + number(put.priority) + " " + number(*put.due_at) + " " + number(put.ttr);
  } else {
    put.delay = random_delay(random);
    when = "put " + number(put.priority) + " " + number(put.delay / 1'000) + " " +
           number(put.ttr / 1'000);
  }
  put.bytes = when + " " + number(put.body.size()) + "\r\n" + put.body + "\r\n";
  return put;
}

Command reserve(Random& random) {
  Command reserve{.verb = Verb::kReserve};
  if (below(random, 6) == 0) return random_reserve_jobs(random);
  const std::uint64_t way = below(random, 4);
  if (way == 0) {
    reserve.bytes = "reserve\r\n";
  } else if (way == 1) {
    reserve.timeout = below(random, 2'000);
    reserve.bytes = "reserve-with-timeout-ms " + number(*reserve.timeout) + "\r\n";
  } else {
    reserve.timeout = 1'000 * one_of(random, std::array<std::uint64_t, 4>{0, 0, 1, 30});
    reserve.bytes = "reserve-with-timeout " + number(*reserve.timeout / 1'000) + "\r\n";
  }
  return reserve;
}

Command on_job(Verb verb, std::string_view word, JobId id) {
  return {.verb = verb, .bytes = std::string(word) + " " + number(id) + "\r\n", .id = id};
}

// What a worker does with a job, mostly one that it holds.
Command finish(const Model& model, ClientNumber client, Random& random) {
  const std::optional<JobId> held = model.any_held(client, random);
  const JobId id = held && below(random, 32) != 0 ? *held : some_id(model, random);
  Command command;
  if (below(random, 12) == 0) return random_release_jobs(model, client, random);
  if (below(random, 12) == 0) return random_delete_jobs(model, client, random);
  switch (below(random, 10)) {
    case 0: {
      command = {.verb = Verb::kRelease, .id = id};
      command.priority = random_priority(random);
      command.delay = random_delay(random);
      command.bytes = "release " + number(id) + " " + number(command.priority) + " " +
                      number(command.delay / 1'000) + "\r\n";
      return command;
    }
    case 1: {
      command = {.verb = Verb::kRelease, .id = id};
      command.priority = random_priority(random);
      command.delay = below(random, 1'000);
      command.bytes = "release-ms " + number(id) + " " + number(command.priority) + " " +
                      number(command.delay) + "\r\n";
      return command;
    }
    case 2: {
      command = {.verb = Verb::kBury, .id = id};
      command.priority = random_priority(random);
      command.bytes = "bury " + number(id) + " " + number(command.priority) + "\r\n";
      return command;
    }
    case 3:
      return below(random, 2) == 0 ? on_job(Verb::kTouch, "touch", id) : touch_job(id);
    case 4:
    case 5:
      return random_fail(id, random);
    default:
      return on_job(Verb::kDelete, "delete", id);
  }
}

Command on_tube(Verb verb, std::string_view word, const std::string& tube) {
  return {.verb = verb, .bytes = std::string(word) + " " + tube + "\r\n", .tube = tube};
}

Command choose_tubes(Random& random) {
  switch (below(random, 3)) {
    case 0:
      return on_tube(Verb::kUse, "use", random_tube(random));
    case 1:
      return on_tube(Verb::kWatch, "watch", random_tube(random));
    default:
      return on_tube(Verb::kIgnore, "ignore", random_tube(random));
  }
}

Command operate(const Model& model, Random& random, queue::Now now) {
  Command command;
  switch (below(random, 17)) {
    case 0: {
      command = {.verb = Verb::kKick};
      command.bound = below(random, 4) == 0 ? UINT32_MAX : 1 + below(random, 50);
      command.bytes = "kick " + number(command.bound) + "\r\n";
      return command;
    }
    case 1:
      return on_job(Verb::kKickJob, "kick-job", some_id(model, random));
    case 2: {
      command = on_tube(Verb::kPause, "pause-tube", random_tube(random));
      command.delay = 1'000 * below(random, 3);
      command.bytes.insert(command.bytes.size() - 2, " " + number(command.delay / 1'000));
      return command;
    }
    case 3:
      return {.verb = Verb::kPeekReady, .bytes = "peek-ready\r\n"};
    case 4:
      return {.verb = Verb::kPeekDelayed, .bytes = "peek-delayed\r\n"};
    case 5:
      return {.verb = Verb::kPeekBuried, .bytes = "peek-buried\r\n"};
    case 6:
      return on_job(Verb::kPeek, "peek", some_id(model, random));
    case 7:
      return on_job(Verb::kStatsJob, "stats-job", some_id(model, random));
    case 8:
    case 9:
      return on_tube(Verb::kStatsTube, "stats-tube", random_tube(random));
    case 10:
      return on_job(Verb::kReserveJob, "reserve-job", some_id(model, random));
    case 11:
      return on_job(Verb::kDelete, "delete", some_id(model, random));
    case 12:
      return choose_tubes(random);
    case 13:
      return random_cancel(model, random);
    case 14:
      return random_patch(model, random, now, kMaxJobSize);
    case 15:
      return random_peek_job(model, random);
    default: {
      if (below(random, 16) == 0)
        return {.verb = Verb::kRefused, .bytes = "auth nobody\r\n", .refusal = "AUTHENTICATED"};
      constexpr std::array<const char*, 4> kLists = {
          "stats\r\n", "list-tubes\r\n", "list-tubes-watched\r\n", "list-tube-used\r\n"};
      return {.verb = Verb::kOther, .bytes = kLists[below(random, kLists.size())]};
    }
  }
}

Command refused(const std::string& bytes, const std::string& refusal) {
  return {.verb = Verb::kRefused, .bytes = bytes, .refusal = refusal};
}

Command refused_request(Random& random) {
  constexpr std::array<const char*, 4> kRequests = {
      "GET /v1/jobs/x HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /v1/tubes/a/jobs?limit=3 HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "PATCH /v1/tubes/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n"
      R"({"retention":"5"} )",
      "POST /v1/jobs:move HTTP/1.1\r\nHost: localhost\r\nContent-Length: 35\r\n\r\n"
      R"({"filter":{"tube":"a"},"to":"a b"} )"};
  Command command = refused(kRequests[below(random, kRequests.size())], "BAD_REQUEST");
  command.by_http = true;
  return command;
}

// What operators ask for, by HTTP.
Command administer(const Model& model, Random& random, queue::Now now) {
  if (below(random, 256) == 0) {
    Command checkpoint{.verb = Verb::kCheckpoint};
    write_request(checkpoint);
    return checkpoint;
  }
  switch (below(random, 13)) {
    case 0:
      return random_set_tube(random);
    case 1:
      return below(random, 2) == 0 ? random_stats_group(random) : random_list_groups(random);
    case 2:
    case 3:
      return random_schedule_command(random, now);
    case 4:
      return random_bury_job(model, random);
    case 12:
      return random_due_counts(random);
    case 5:
    case 6:
      return random_show_job(model, random);
    case 7:
    case 8:
      return random_list(model, random, now);
    case 9:
      return below(random, 4) == 0 ? refused_request(random) : random_list(model, random, now);
    default:
      return random_bulk(model, random, now);
  }
}

// Options that are not allowed. The body is read before the answer.
Command damage_options(Random& random) {
  const std::string body = random_body(random);
  const std::string put = "put-job " + number(body.size());
  switch (below(random, 4)) {
    case 0:
      return refused(put + " on-conflict=replace\r\n" + body + "\r\n",
                     "BAD_OPTION on-conflict: needs `key`");
    case 1:
      return refused(put + " key=1 key=1\r\n" + body + "\r\n", "BAD_OPTION key: comes twice");
    case 2:
      return refused(
          "patch-job key=1 delay=1s due=1 body=" + number(body.size()) + "\r\n" + body + "\r\n",
          "BAD_OPTION due: does not go with `delay`");
    default:
      return refused("patch-job 1 ttr=1ms\r\n",
                     "BAD_OPTION ttr: \"1ms\": a ttr is 1s to 4294967295s");
  }
}

}  // namespace

bool Talker::puts_large_body(const Model& model, Random& random, std::uint64_t rarely) const {
  return max_job_size_ > kMaxJobSize && below(random, rarely) == 0 && model.may_put_large_body();
}

Command Talker::produce(const Model& model, Random& random, queue::Now now) const {
  switch (below(random, 16)) {
    case 0:
      return random_cancel(model, random);
    case 1:
      return random_patch(model, random, now,
                          std::min<std::size_t>(max_job_size_, queue::kBodyPiece));
    case 2:
      return random_peek_job(model, random);
    case 3:
      return random_put_jobs(model, random, now);
    default: {
      std::string body =
          puts_large_body(model, random, 32) ? random_large_body(random) : random_body(random);
      return below(random, 2) == 0 ? put(random, now, std::move(body))
                                   : random_put_job(random, now, std::move(body));
    }
  }
}

Command Talker::damage(const Model& model, Random& random) const {
  switch (below(random, 9)) {
    case 0: {
      if (puts_large_body(model, random, 8)) {
        Command put = refused("", "EXPECTED_CRLF");
        put.body = random_large_body(random);
        put.bytes = "put 0 0 1 " + number(put.body.size()) + "\r\n" + put.body + "!!";
        return put;
      }
      if (max_job_size_ > kMaxJobSize) return refused("put 0 0\r\n", "BAD_FORMAT");
      const std::uint64_t size = kMaxJobSize + 1 + below(random, 3'000);
      return refused("put 0 0 1 " + number(size) + "\r\n" + std::string(size, 'x') + "\r\n",
                     "JOB_TOO_BIG");
    }
    case 1:
      return refused("put 0 0 1 5\r\nhello!!", "EXPECTED_CRLF");
    case 2:
      return refused(std::string(below(random, 5'000) + 225, 'y') + "\r\n", "BAD_FORMAT");
    case 3:
      return refused("put-at 0 999999999999999 1000 1\r\nx\r\n", "OUT_OF_RANGE");
    case 4:
      return refused("release 1 0 99999999999\r\n", "BAD_FORMAT");
    case 5:
      return refused("peek\r\n", "UNKNOWN_COMMAND");
    case 6:
      return damage_options(random);
    default: {
      std::string line;
      for (std::uint64_t left = below(random, 40); left > 0; --left) {
        const auto byte = static_cast<char>(random());
        if (byte != '\r' && byte != '\n') line += byte;
      }
      return {.verb = Verb::kGarbage, .bytes = "#" + line + "\r\n"};
    }
  }
}

Command Talker::next(const Model& model, ClientNumber client, Random& random,
                     queue::Now now) const {
  const Role role = role_ == Role::kAnybody ? static_cast<Role>(below(random, kRoles)) : role_;
  const std::uint64_t chance = below(random, 16);
  switch (role) {
    case Role::kProducer:
      if (model.jobs() > kManyJobs && chance < 12)
        return on_job(Verb::kDelete, "delete", some_id(model, random));
      return chance == 0 ? choose_tubes(random) : produce(model, random, now);
    case Role::kWorker:
      if (chance == 0) return below(random, 8) == 0 ? name_client(client) : choose_tubes(random);
      return chance < 7 ? reserve(random) : finish(model, client, random);
    case Role::kVandal:
      if (chance == 0) return {.verb = Verb::kQuit, .bytes = "quit\r\n"};
      return chance < 8 ? damage(model, random) : operate(model, random, now);
    default:
      if (role_ == Role::kOperator) return administer(model, random, now);
      return operate(model, random, now);
  }
}

}  // namespace carillon::simulator
