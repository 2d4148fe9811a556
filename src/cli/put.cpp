// `carillon put` puts a job, or one for each line, and prints their ids; `carillon reserve` waits
// for a job and prints its body.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/job.h"
#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/json_fields.h"
#include "cli/line_batches.h"
#include "cli/output.h"
#include "cli/wait.h"
#include "server/api/job.h"
#include "server/api/jobs.h"
#include "server/beanstalk/command.h"
#include "server/beanstalk/job_options.h"
#include "server/text/duration.h"
#include "server/text/json_value.h"
#include "server/text/timestamp.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kPutExamples = R"(The body is BODY byte for byte, or all of standard input.
Only one job of a tube can have a given KEY. If a job has it, nothing is put and
its id is printed; --on-conflict replace, keep-due or debounce changes it. So a
put with a key can be repeated until it is answered. The key of a job that was
cancelled or has expired is free at once.
With --batch each line of standard input is the body of a job; empty lines are
left out. 1000 lines are put at once, or none of them; --once TOKEN makes it
safe to put the same lines again after a failure, for 24 hours.
DURATION: 250ms, 3s, 1.5h, 1h30m, 40d. TIME: RFC 3339 with its offset from UTC,
of the years 1970 to 9999; a time in the past is now.

Examples:
  carillon put --delay 3s "hello"
  carillon put --at 2030-01-01T09:00:00+02:00 --tube mail "new year"
  carillon put --tube images --ttr 10m --pri 0 < job.json
  carillon put --key invoice-7 --on-conflict replace --delay 1h "remind"
  carillon put --max-attempts 5 --backoff 1s..1h "charge"
  carillon put --batch --tube images --once thumbnails-7 < paths.txt
  carillon put --expires-in 5m --at-expiry dead "code 4711"
  carillon put --json --delay 40d -- "-a body that starts with a dash")";

// The server accepts a shorter ttr, but raises it to 1 s.
constexpr std::chrono::milliseconds kShortestTtr{queue::kMinTtr};
constexpr std::chrono::milliseconds kLongestTtr{queue::kMaxTtr};

std::chrono::milliseconds parse_ttr(const std::string& text) {
  const auto ttr = server::parse_duration(text);
  if (ttr < kShortestTtr)
    throw std::invalid_argument(fmt::format("\"{}\": the shortest is 1s", text));
  if (ttr <= kLongestTtr) return ttr;
  throw std::invalid_argument(fmt::format("\"{}\": the longest is 4294967295s (49710 days)", text));
}

struct PutRequest {
  ServerAddress server;
  std::optional<std::string> body;
  std::string tube{kDefaultTube};
  PutOptions options;
  bool json = false;
  bool batch = false;
  std::string once;
};

// Checks the options that put-job knows, as the user has written them.
void check_named(const PutOptions& options) try {
  using server::beanstalk::OptionsOf;
  server::beanstalk::parse_job_options(options.named, OptionsOf::kPut);
} catch (const std::invalid_argument& error) {
  throw UsageError("--" + replace_fields(error.what(), option_named));
}

// A worker may hold the job that exists: --json has one word for both.
std::string_view word_of(PutAnswer::Result result) {
  using Result = PutAnswer::Result;
  switch (result) {
    case Result::kInserted:
      return "inserted";
    case Result::kReplaced:
      return "replaced";
    case Result::kExists:
    case Result::kReserved:
      return "exists";
  }
  return {};
}

// Returns the JSON of a put that names its result: one with a key that is taken, or in a batch.
json::object shown_of(const PutAnswer& answer, std::string_view tube) {
  json::object shown{{"id", answer.id}, {"tube", tube}, {"result", word_of(answer.result)}};
  if (!answer.state.empty()) shown["state"] = answer.state;
  return shown;
}

// Returns the message about the job whose key a put has met, with advice if no worker gets that
// job.
std::string told_of_key(const PutAnswer& answer) {
  if (answer.state == "done") {
    return fmt::format(
        "job {} had the key and is done, and its --key-window is not over: nothing was put",
        answer.id);
  }
  std::string told =
      fmt::format("job {} has the key, and is {}: nothing was put", answer.id, answer.state);
  if (answer.state != "dead" && answer.state != "buried") return told;
  return fmt::format(
      "{}, and no worker gets that job; see --on-conflict replace, or carillon "
      "kick --job {}",
      told, answer.id);
}

// Says what became of a put with a key. Throws Failure if it has met a job that a worker holds.
void report(const PutAnswer& answer) {
  using Result = PutAnswer::Result;
  switch (answer.result) {
    case Result::kInserted:
      return;
    case Result::kReplaced:
      return remark(fmt::format("job {} had the key: it is replaced", answer.id));
    case Result::kExists:
      return remark(told_of_key(answer));
    case Result::kReserved:
      throw Failure(
          fmt::format("job {} has the key, and a worker holds it: nothing was put", answer.id));
  }
}

// Prints the id or its JSON. If that fails, the error names the id, so that the user does not put
// the job again.
void print(bool as_json, const json::object& shown, std::uint64_t id) try {
  write_result(as_json, shown, std::to_string(id));
} catch (const Failure& error) {
  throw Failure(fmt::format("job {} was put, but its id was not printed: {}", id, error.what()));
}

// Returns when the job is due, in UTC ms. Only the server knows that: its clock decides, and it has
// chosen the part of a spread. `sent_at` and this machine's clock are used if the server has no
// HTTP, and if the job is gone or the token may not read it. Returns nothing if that is not enough.
std::optional<std::uint64_t> due_of(const ServerAddress& server, std::uint64_t id,
                                    const PutOptions& options, std::uint64_t sent_at) {
  try {
    const auto job = Api(server).call<server::Job>("getJob", server::JobId{id});
    return std::max(job.due.at, job.created.at);  // a time in the past is now
  } catch (const Failure&) {
    // The job was put nevertheless.
  }
  if (options.named.find("spread=") != std::string::npos) return std::nullopt;
  // No overflow: the server has accepted the delay, so the sum is not after the year 9999.
  const auto delay = static_cast<std::uint64_t>(options.delay.count());
  return std::max(sent_at, options.due_at.value_or(sent_at + delay));
}

// Puts the lines, and prints an id for each. Batches have the same lines whenever standard input
// has: so a batch that is put again has the same token.
int put_lines(const PutRequest& request) {
  if (request.body && *request.body != "-")
    throw UsageError("--batch puts the lines of standard input; leave out BODY");
  check_named(request.options);
  if ((" " + request.options.named).find(" key=") != std::string::npos) {
    throw UsageError(
        "--key is for one job, and --batch puts a job for each line; use --once TOKEN to put the "
        "lines once however often that is tried, or give each job a key of its own in lines for "
        "carillon import - such as {\"key\":\"invoice-7\",\"body\":\"remind\"}");
  }
  Client client(Stream::connect(request.server));
  client.require("put-jobs", "peek-job 0");
  client.use(request.tube);
  using server::kMaxBatch;
  LineBatches batches(read_some_input, client.most_in_batch(request.tube, kMaxBatch));
  const auto lines = [&batches] { return line_numbers(batches.first_line(), batches.last_line()); };
  for (auto bodies = batches.next(); !bodies.empty(); bodies = batches.next()) {
    const std::string once =
        request.once.empty() ? "" : fmt::format("{}/{}", request.once, batches.number());
    try {
      std::string text;
      const BatchAnswer batch = client.put_all(bodies, request.options, once);
      const bool already = batch.result == BatchAnswer::Result::kAlready;
      // The tube that was named then may be another one.
      if (already) remark(lines() + ": put before with this token; nothing was put now");
      for (const PutAnswer& answer : batch.jobs) {
        const json::object shown = already ? json::object{{"id", answer.id}, {"result", "already"}}
                                           : shown_of(answer, request.tube);
        text += (request.json ? server::json_text(shown) : std::to_string(answer.id)) + "\n";
      }
      write_out(text);
    } catch (const Failure& error) {
      throw Failure(fmt::format("{}: {}", lines(), error.what()));
    }
  }
  return kSuccess;
}

int put(const PutRequest& request) {
  if (request.batch) return put_lines(request);
  if (!request.once.empty()) throw UsageError("--once needs --batch");
  check_named(request.options);
  const std::string body = body_or_standard_input(request.body, kLargestBody);
  Client client(Stream::connect(request.server));
  client.probe();  // another server would carry out the body as commands
  client.use(request.tube);
  const std::uint64_t sent_at = utc_now_ms();
  const PutAnswer answer = client.put(body, request.options);
  report(answer);
  json::object shown = shown_of(answer, request.tube);
  if (request.json && answer.result == PutAnswer::Result::kInserted) {
    const auto due = due_of(request.server, answer.id, request.options, sent_at);
    shown = {{"id", answer.id}, {"tube", request.tube}, {"due", nullptr}};
    if (due) shown["due"] = server::format_timestamp(*due);
  }
  print(request.json, shown, answer.id);
  return kSuccess;
}

}  // namespace

void add_put(CLI::App& command, int& exit_code) {
  PutRequest& request = set_action(command, exit_code, kPutExamples, put);
  add_text(command, "BODY", request.body,
           "What the worker gets; - or nothing: read it from standard input");
  const Argument delay = add_value(command, "--delay DURATION", request.options.delay,
                                   server::parse_duration, "Not before this long from now");
  add_value(command, "--at TIME", request.options.due_at, server::parse_timestamp,
            "Not before this time, by the server's clock")
      .excludes(delay);
  add_value(command, "--pri N", request.options.priority, parse_priority,
            "0 (most urgent) to 4294967295; default: 65536");
  add_value(command, "--ttr DURATION", request.options.ttr, parse_ttr,
            "How long a worker may hold it; 1s to 49710d, default: 1m");
  const auto named = [&](const std::string& name, const char* type, const char* description) {
    const auto set = [name, &named = request.options.named](const std::string& text) {
      if (text.empty() || text.find(' ') != std::string::npos)
        throw UsageError(fmt::format("--{} \"{}\": is empty, or has a space", name, text));
      named += (named.empty() ? "" : " ") + name + "=" + text;
    };
    add_text(command, fmt::format("--{} {}", name, type), set, description);
  };
  named("key", "KEY", "Your own name of the job; 1 to 200 bytes");
  named("on-conflict", "WHAT", "reject, ignore, replace, keep-due or debounce (default: reject)");
  named("key-window", "DURATION", "How long the key counts after the job is done");
  named("group", "GROUP", "Groups of a tube take turns: a customer, for instance");
  add_text(
      command, "--attributes JSON",
      [&named = request.options.named](const std::string& text) {
        try {
          named += (named.empty() ? "" : " ") + ("attributes=" + server::attributes_of(text));
        } catch (const std::invalid_argument& error) {
          throw UsageError(fmt::format("--attributes: {}", error.what()));
        }
      },
      "A JSON object that is kept with the job, e.g. a traceparent");
  named("spread", "DURATION", "Due later by a part of it, to part a crowd of jobs");
  named("expires-in", "DURATION", "From then on no worker gets it");
  named("expires-at", "TIME", "The same, as a moment");
  named("at-expiry", "WHAT", "drop it then, or bury it: dead (default: drop)");
  named("max-attempts", "N", "The job is dead after N failed attempts");
  named("backoff", "DURATION", "How long after a failed attempt; 1s..1h doubles");
  named("jitter", "PERCENT", "Up to this part is added to that: 20%");
  named("lost", "WHAT",
        "When its worker's connection is lost, the attempt fails, or the job returns (default: "
        "returns)");
  add_tube_option(command, request.tube, "Where to put it (default: default)");
  add_flag(command, "--batch", request.batch, "Put a job for each line of standard input");
  add_value(
      command, "--once TOKEN", request.once,
      [](const std::string& text) {
        if (!server::is_key(text) || text.size() > queue::kMaxKey - 10)
          throw std::invalid_argument(fmt::format("\"{}\": a token has 1 to {} bytes, and no space",
                                                  text, queue::kMaxKey - 10));
        return text;
      },
      "With --batch: put these lines once, however often that is tried");
  add_json_and_server(command, request,
                      R"(Print {"id":...,"tube":...,"due":...}; if the key is
taken, and with --batch for each job,
{"id":...,"tube":...,"result":...,"state":...})");
}

// --- carillon reserve

namespace {

constexpr const char* kReserveExamples =
    R"(Prints the body byte for byte on standard output, on a terminal with a line end
and with \x1B for control characters,
and what happened on standard error. The job goes back to ready when the command
ends, unless --delete was given: then it is deleted once its body is printed.
To run a command for each job, see: carillon work --help

Examples:
  carillon reserve                                  any job of tube default
  carillon reserve --delete --timeout 5s            exit code 1 if none in 5 s
  carillon reserve --tube mail --tube sms --json    from two tubes)";

struct ReserveRequest {
  ServerAddress server;
  std::vector<std::string> tubes;
  std::optional<std::chrono::milliseconds> timeout;
  bool delete_it = false;
  bool json = false;
};

// The protocol's limit: 2^31-1 s.
constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::seconds(2'147'483'647);

std::chrono::milliseconds parse_reserve_timeout(const std::string& text) {
  const auto timeout = server::parse_duration(text);
  if (timeout <= kLongestTimeout) return timeout;
  throw std::invalid_argument(fmt::format(
      "\"{}\": the longest time-out is 2147483647s; without one it waits for ever", text));
}

std::string nothing_within(std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? "no job is ready"
                              : fmt::format("no job within {}", server::short_duration(timeout));
}

// Returns the job's tube. The reply to a reserve does not name it, so if several tubes are watched,
// asks the server.
std::string tube_of(const Job& job, const ReserveRequest& request, Client& client) {
  if (request.tubes.empty()) return std::string(kDefaultTube);
  if (request.tubes.size() == 1) return request.tubes.front();
  const auto stats = client.stats_job(job.id);
  if (!stats) throw Failure(fmt::format("job {} is gone: its ttr ran out", job.id));
  return stats->text("tube");
}

int reserve(const ReserveRequest& request) {
  Client client(Stream::connect(request.server));
  if (request.timeout) client.probe();
  if (!request.tubes.empty()) client.watch_only(request.tubes);
  const std::optional<Job> job = client.reserve(request.timeout);
  if (!job) throw Failure(nothing_within(*request.timeout));

  const std::string tube = tube_of(*job, request, client);
  if (request.json) {
    json::object line{{"id", job->id}, {"tube", tube}};
    add_body(line, job->body);
    write_out(server::json_text(line) + "\n");
  } else {
    write_body(job->body);
  }
  if (!request.delete_it) {
    remark(
        fmt::format("job {} from tube {}: it goes back to ready when this command ends (use "
                    "--delete to finish it)",
                    job->id, tube));
    return kSuccess;
  }
  if (!client.delete_job(job->id)) {
    throw Failure(
        fmt::format("job {} was printed but not deleted: its ttr ran out meanwhile", job->id));
  }
  remark(fmt::format("job {} from tube {}: deleted", job->id, tube));
  return kSuccess;
}

}  // namespace

void add_reserve(CLI::App& command, int& exit_code) {
  ReserveRequest& request = set_action(command, exit_code, kReserveExamples, reserve);
  add_value(command, "--tube TUBE", request.tubes, parse_tube,
            "From this tube (default: default); may be repeated");
  add_value(command, "--timeout DURATION", request.timeout, parse_reserve_timeout,
            "Give up after this long; 0: do not wait");
  add_flag(command, "--delete", request.delete_it, "Delete the job once it is printed");
  add_json_and_server(command, request, "Print {\"id\":...,\"tube\":...,\"body\":...}");
}

}  // namespace carillon::cli
