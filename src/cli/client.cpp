// Sends the commands of the beanstalk protocol and parses the replies (client.h).

#include "cli/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/text/duration.h"
#include "server/text/whole_number.h"

namespace carillon::cli {
namespace {

// The most data that a reply may announce, in bytes: 4 GiB. No server holds a larger job, and
// reading one would only use up memory.
constexpr std::uint64_t kMaxData = std::uint64_t{4} << 30;

constexpr std::string_view verb_of(std::string_view command) {
  return command.substr(0, command.find(' '));
}

// Returns the words of a reply line, which are separated by single spaces.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t space = line.find(' ');
    words.push_back(line.substr(0, space));
    if (space == std::string_view::npos) return words;
    line.remove_prefix(space + 1);
  }
}

// Returns the line for a message: at most 60 characters, and no control characters, which a
// terminal would obey.
std::string printable(std::string_view line) {
  std::string text(line.substr(0, 60));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line.size() > 60 ? text + "..." : text;
}

std::int64_t in_seconds(std::chrono::milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

}  // namespace

std::string Client::ask(const std::string& command, Patience patience) {
  stream_.send(command + "\r\n");
  return stream_.read_line(patience);
}

std::string Client::put_command(std::string_view body, const PutOptions& options) const {
  if (!knows_own_verbs_) {
    const std::chrono::milliseconds second(1'000);
    const bool is_whole =
        options.delay % second == second.zero() && options.ttr % second == second.zero();
    if (is_whole && !options.due_at && options.named.empty()) {
      return fmt::format("put {} {} {} {}", options.priority, in_seconds(options.delay),
                         in_seconds(options.ttr), body.size());
    }
    throw Failure(
        fmt::format("{} is no Carillon: it takes a body, --pri, and --delay and --ttr in "
                    "whole seconds",
                    stream_.peer()));
  }
  if (!options.named.empty()) {
    const std::string when = options.due_at ? fmt::format("due={}", *options.due_at)
                                            : fmt::format("delay={}ms", options.delay.count());
    return fmt::format("put-job {} pri={} ttr={}ms {} {}", body.size(), options.priority,
                       options.ttr.count(), when, options.named);
  }
  const auto put = [&](std::string_view verb, auto when) {
    return fmt::format("{} {} {} {} {}", verb, options.priority, when, options.ttr.count(),
                       body.size());
  };
  return options.due_at ? put("put-at", *options.due_at) : put("put-ms", options.delay.count());
}

bool Client::ask_whether(const std::string& command, std::string_view yes) {
  return whether(command, ask(command), yes);
}

bool Client::whether(const std::string& command, const std::string& reply,
                     std::string_view yes) const {
  if (reply == yes) return true;
  if (reply == "NOT_FOUND") return false;
  throw_unexpected(command, reply);
}

std::uint64_t Client::number_after(const std::string& command, const std::string& reply,
                                   std::string_view keyword) const {
  const auto words = words_of(reply);
  if (words.size() != 2 || words[0] != keyword) throw_unexpected(command, reply);
  const auto number = server::whole_number<std::uint64_t>(words[1]);
  if (!number) throw_unexpected(command, reply);
  return *number;
}

std::string Client::read_data(std::uint64_t size) {
  if (size > kMaxData) {
    throw Failure(fmt::format("{} announced {} bytes; no job has more than {}", stream_.peer(),
                              size, kMaxData));
  }
  std::string data = stream_.read_exactly(size + 2);
  if (!data.ends_with("\r\n")) {
    throw Failure(
        fmt::format("{} sent {} bytes of data that no line end follows", stream_.peer(), size));
  }
  data.resize(size);
  return data;
}

std::optional<Job> Client::read_job(const std::string& command, const std::string& reply,
                                    std::string_view keyword, std::string_view none) {
  if (reply == none) return std::nullopt;
  const auto words = words_of(reply);
  if (words.size() != 3 || words[0] != keyword) throw_unexpected(command, reply);
  const auto id = server::whole_number<std::uint64_t>(words[1]);
  const auto size = server::whole_number<std::uint64_t>(words[2]);
  if (!id || !size) throw_unexpected(command, reply);
  return Job{.id = *id, .body = read_data(*size)};
}

std::optional<StatsFields> Client::ask_stats(const std::string& command) {
  return read_stats(command, ask(command));
}

std::optional<StatsFields> Client::read_stats(const std::string& command,
                                              const std::string& reply) {
  if (reply == "NOT_FOUND") return std::nullopt;
  return parse_stats(read_data(number_after(command, reply, "OK")));
}

void Client::throw_unexpected(std::string_view command, std::string_view reply) const {
  const std::string& peer = stream_.peer();
  if (reply == "OUT_OF_MEMORY") {
    throw Refused(
        fmt::format("{} is out of memory, disk space or connections; its log says which", peer),
        reply);
  }
  if (reply == "INTERNAL_ERROR") {
    throw Refused(fmt::format("{} had an internal error; its log says which", peer), reply);
  }
  if (reply == "UNKNOWN_COMMAND") {
    throw Failure(fmt::format("{} does not know \"{}\": it is not Carillon, or an older one", peer,
                              verb_of(command)));
  }
  constexpr std::string_view kForbidden = "FORBIDDEN ";
  if (reply.starts_with(kForbidden)) {
    throw Forbidden(fmt::format("{} refuses {}: {}", peer, verb_of(command),
                                printable(reply.substr(kForbidden.size()))));
  }
  throw Failure(fmt::format("{} answered \"{}\" to \"{}\", which is not the beanstalk protocol",
                            peer, printable(reply), printable(command)));
}

void Client::use(std::string_view tube) {
  const std::string command = fmt::format("use {}", tube);
  const std::string reply = ask(command);
  if (reply != fmt::format("USING {}", tube)) throw_unexpected(command, reply);
}

void Client::watch_only(const std::vector<std::string>& tubes) {
  constexpr std::string_view kInitial = "default";
  for (const std::string& tube : tubes) watch(tube);
  if (std::find(tubes.begin(), tubes.end(), kInitial) == tubes.end()) ignore(kInitial);
}

void Client::watch(std::string_view tube) {
  const std::string command = fmt::format("watch {}", tube);
  number_after(command, ask(command), "WATCHING");
}

void Client::ignore(std::string_view tube) {
  const std::string command = fmt::format("ignore {}", tube);
  const std::string reply = ask(command);
  if (reply != "NOT_IGNORED") number_after(command, reply, "WATCHING");
}

// A server does not accept a size of more than 32 bits as a number: it would not skip the body, but
// run it as commands.
void Client::check_size(std::string_view body) {
  if (body.size() <= kLargestBody) return;
  throw Failure(fmt::format("the body has {} bytes; the most that any server takes is {}",
                            body.size(), kLargestBody));
}

PutAnswer Client::put(std::string_view body, const PutOptions& options) {
  check_size(body);
  const std::string command = put_command(body, options);
  return read_put(command, ask_to_put(command, body), body.size());
}

PutAnswer Client::put_job(std::string_view body, const std::string& options) {
  check_size(body);
  const std::string command = fmt::format("put-job {} {}", body.size(), options);
  return read_put(command, ask_to_put(command, body), body.size());
}

std::string Client::ask_to_put(const std::string& command, std::string_view body) {
  for (std::chrono::milliseconds rested{0};;) {
    // The body may be large: sending it by itself avoids a copy.
    stream_.send(command + "\r\n");
    stream_.send(body);
    stream_.send("\r\n");
    std::string reply = stream_.read_line();
    if (!rests(reply, rested)) return reply;
  }
}

bool Client::rests(std::string_view reply, std::chrono::milliseconds& rested) {
  using std::chrono::milliseconds;
  if (!reply.starts_with(kTooFast)) return false;
  const auto told = server::whole_number<std::uint64_t>(reply.substr(kTooFast.size()));
  if (!told) return false;
  constexpr milliseconds kMost = kLongestRest;
  const milliseconds left = kMost - rested;
  const std::string why =
      fmt::format("{} takes no more jobs in this tube for now, by its put-rate", stream_.peer());
  if (*told > static_cast<std::uint64_t>(left.count()))
    throw Refused(fmt::format("{}; try again in {} ms", why, *told), reply);
  const milliseconds rest = std::max(milliseconds(*told), milliseconds(1));
  notice_.before(rest, fmt::format("{} ({})", why, server::short_duration(rest)));
  stream_.rest(rest);
  rested += rest;
  return true;
}

PutAnswer Client::read_put(const std::string& command, const std::string& reply,
                           std::size_t body_size) {
  if (const auto answer = put_answer(command, reply)) return *answer;
  refuse_put(command, reply, body_size);
}

std::optional<PutAnswer> Client::put_answer(const std::string& command,
                                            const std::string& reply) const {
  using Result = PutAnswer::Result;
  constexpr std::pair<std::string_view, Result> kAnswers[] = {{"INSERTED", Result::kInserted},
                                                              {"REPLACED", Result::kReplaced},
                                                              {"EXISTS", Result::kExists},
                                                              {"IS_RESERVED", Result::kReserved}};
  const auto words = words_of(reply);
  for (const auto& [answer, result] : kAnswers) {
    if (words.front() != answer) continue;
    const bool has_state = result == Result::kExists && words.size() == 3;
    const std::string rest = has_state ? reply.substr(0, reply.rfind(' ')) : reply;
    return PutAnswer{number_after(command, rest, answer), result,
                     std::string(has_state ? words.back() : "")};
  }
  return std::nullopt;
}

void Client::refuse_put(const std::string& command, const std::string& reply,
                        std::size_t body_size) {
  if (reply == "JOB_TOO_BIG") {
    throw Failure(
        fmt::format("the body has {} bytes; the limit of {} is {}, see carillon serve "
                    "--max-job-size",
                    body_size, stream_.peer(), stats().number("max-job-size")));
  }
  if (reply == "DRAINING")
    throw Failure(
        fmt::format("{} takes no new jobs: it is draining, or the tube is", stream_.peer()));
  if (reply == "OUT_OF_RANGE")
    throw Failure("the job would be due after the year 9999; the server refused it");
  if (reply == "NOT_MILLISECONDS") {
    throw Failure(
        "the job would be due in 1970; the server refused it, because seconds that are "
        "taken for milliseconds look like that");
  }
  if (reply.starts_with(kBadOption)) throw Failure(reply.substr(kBadOption.size()));
  if (reply.starts_with("BURIED ")) {
    throw Unavailable(fmt::format("{} is out of memory and buried the job, as number {}",
                                  stream_.peer(), number_after(command, reply, "BURIED")));
  }
  throw_unexpected(command, reply);
}

std::optional<Job> Client::reserve(Patience timeout) {
  std::string command = "reserve";
  if (timeout && knows_own_verbs_)
    command = fmt::format("reserve-with-timeout-ms {}", timeout->count());
  if (timeout && !knows_own_verbs_)
    command = fmt::format("reserve-with-timeout {}", in_seconds(*timeout));
  // Adding to a time-out of nearly 292 million years would overflow.
  Patience patience = timeout;
  if (patience && *patience < std::chrono::milliseconds::max() - kPatience) *patience += kPatience;
  return read_job(command, ask(command, patience), "RESERVED", "TIMED_OUT");
}

bool Client::delete_job(std::uint64_t id) {
  return ask_whether(fmt::format("delete {}", id), "DELETED");
}

bool Client::release(std::uint64_t id, std::uint32_t priority, std::chrono::milliseconds delay) {
  const std::string command =
      knows_own_verbs_ ? fmt::format("release-ms {} {} {}", id, priority, delay.count())
                       : fmt::format("release {} {} {}", id, priority, in_seconds(delay));
  return ask_whether(command, "RELEASED");
}

bool Client::bury(std::uint64_t id, std::uint32_t priority) {
  return ask_whether(fmt::format("bury {} {}", id, priority), "BURIED");
}

bool Client::touch(std::uint64_t id) {
  return ask_whether(fmt::format("touch {}", id), "TOUCHED");
}

std::optional<Job> Client::peek(std::string_view state) {
  const std::string command = fmt::format("peek-{}", state);
  return read_job(command, ask(command), "FOUND", "NOT_FOUND");
}

StatsFields Client::stats() {
  auto fields = ask_stats("stats");
  if (!fields) throw_unexpected("stats", "NOT_FOUND");
  return *std::move(fields);
}

std::optional<StatsFields> Client::stats_job(std::uint64_t id) {
  return ask_stats(fmt::format("stats-job {}", id));
}

std::optional<StatsFields> Client::stats_tube(std::string_view tube) {
  return ask_stats(fmt::format("stats-tube {}", tube));
}

bool Client::name(std::string_view name) {
  const std::string command = fmt::format("name-client {}", name);
  const std::string reply = ask(command);
  knows_own_verbs_ = reply != "UNKNOWN_COMMAND";
  if (knows_own_verbs_ && reply != "NAMED") throw_unexpected(command, reply);
  return knows_own_verbs_;
}

bool Client::probe() {
  const std::string command = "peek-job 0";
  const std::string reply = ask(command);
  // A token that may not read is refused here, and may still put.
  if (reply.starts_with("FORBIDDEN this port speaks TLS")) throw_unexpected(command, reply);
  knows_own_verbs_ = reply != "UNKNOWN_COMMAND";
  return knows_own_verbs_;
}

TouchAnswer Client::touch_job(std::uint64_t id) {
  const std::string command = fmt::format("touch-job {}", id);
  const std::string reply = ask(command);
  if (reply == "TOUCHED") return TouchAnswer::kTouched;
  if (reply == "CANCEL_ASKED") return TouchAnswer::kCancelAsked;
  if (reply == "NOT_FOUND") return TouchAnswer::kNone;
  throw_unexpected(command, reply);
}

FailAnswer Client::fail(std::uint64_t id, std::string_view error, const FailOptions& options) {
  using Result = FailAnswer::Result;
  std::string command = fmt::format("fail-job {} {}", id, error.size());
  if (options.delay) command += fmt::format(" delay={}ms", options.delay->count());
  if (options.max_attempts) command += fmt::format(" max-attempts={}", *options.max_attempts);
  stream_.send(command + "\r\n");
  stream_.send(error);
  const std::string reply = ask("");
  if (reply == "NOT_FOUND") return {};
  std::istringstream words(reply);
  std::string word;
  FailAnswer answer;
  std::int64_t delay = 0;
  if (words >> word && word == "AGAIN" && words >> answer.attempts >> delay) {
    answer.result = Result::kAgain;
    answer.delay = std::chrono::milliseconds(delay);
    return answer;
  }
  if (word == "DEAD" && words >> answer.attempts) {
    answer.result = Result::kDead;
    return answer;
  }
  if (word != "CANCELLED") throw_unexpected(command, reply);
  answer.result = Result::kCancelled;
  return answer;
}

bool Client::pause_tube(std::string_view tube, std::uint32_t seconds) {
  return ask_whether(fmt::format("pause-tube {} {}", tube, seconds), "PAUSED");
}

namespace {

std::string batch_options(const PutOptions& options, const std::string& once) {
  std::string line = fmt::format("pri={} ttr={}ms ", options.priority, options.ttr.count());
  line += options.due_at ? fmt::format("due={}", *options.due_at)
                         : fmt::format("delay={}ms", options.delay.count());
  if (!options.named.empty()) line += " " + options.named;
  if (!once.empty()) line += " once=" + once;
  return line;
}

}  // namespace

std::string refusal_text(std::string_view why, std::size_t body_bytes) {
  if (why == "JOB_TOO_BIG")
    return fmt::format("the body has {} bytes, more than the server takes", body_bytes);
  if (why == "TOO_MANY") return "the put-rate of the tube does not let this many in at once";
  if (why == "OUT_OF_RANGE") return "the job would be due after the year 9999";
  if (why.starts_with(kBadOption)) why.remove_prefix(kBadOption.size());
  return std::string(why);
}

BatchAnswer Client::put_all(const std::vector<std::string>& bodies, const PutOptions& options,
                            const std::string& once) {
  using Result = BatchAnswer::Result;
  std::string data;
  for (const std::string& body : bodies)
    fmt::format_to(std::back_inserter(data), "{}\r\n{}\r\n", body.size(), body);
  BatchAnswer answer = put_jobs(data, batch_options(options, once));
  if (answer.result == Result::kOtherBatch)
    throw Failure(fmt::format("other jobs were put with the token \"{}\"", once));
  if (answer.result != Result::kRefused) return answer;
  const std::size_t size = answer.refused <= bodies.size() ? bodies[answer.refused - 1].size() : 0;
  throw Failure(
      fmt::format("nothing was put: job {}: {}", answer.refused, refusal_text(answer.why, size)));
}

// A client that may not read the tube learns the limit from the refusal of a batch.
std::size_t Client::most_in_batch(std::string_view tube, std::size_t most) try {
  const auto stats = stats_tube(tube);
  if (!stats || !stats->has("put-burst")) return most;
  return std::min<std::size_t>(most, stats->number("put-burst"));
} catch (const Forbidden&) {
  return most;
}

// Sends `commands`, and calls read(command, reply) for each.
template <class Commands, class Read>
void Client::ask_all(const Commands& commands, Read read) {
  std::string text;
  for (const std::string& command : commands) text += command + "\r\n";
  stream_.send(text);
  for (const std::string& command : commands) read(command, stream_.read_line());
}

namespace {

std::vector<std::string> commands_for(std::string_view verb, std::span<const std::uint64_t> ids) {
  std::vector<std::string> commands;
  commands.reserve(ids.size());
  for (const std::uint64_t id : ids) commands.push_back(fmt::format("{} {}", verb, id));
  return commands;
}

}  // namespace

// Jobs that came too fast are sent once more, after a rest.
std::vector<PutAnswer> Client::put_each(std::span<const NewJob> jobs) {
  std::vector<PutAnswer> answers(jobs.size());
  std::vector<std::size_t> left(jobs.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  for (std::chrono::milliseconds rested{0}; !left.empty();) {
    std::vector<std::string> commands;
    std::string text;
    for (const std::size_t i : left) {
      check_size(jobs[i].body);
      text += commands.emplace_back(put_command(jobs[i].body, jobs[i].options));
      text += "\r\n";
      text += jobs[i].body;
      text += "\r\n";
    }
    stream_.send(text);
    std::vector<std::size_t> again;
    std::string too_fast;
    for (std::size_t n = 0; n < left.size(); ++n) {
      const NewJob& job = jobs[left[n]];
      const std::string reply = stream_.read_line();
      if (reply.starts_with(kTooFast)) {
        too_fast = reply;
        again.push_back(left[n]);
        continue;
      }
      try {
        answers[left[n]] = read_put(commands[n], reply, job.body.size());
      } catch (const Failure& error) {
        throw Failure(fmt::format("{}: {}", job.name, error.what()));
      }
    }
    if (again.size() < left.size()) rested = {};
    left = std::move(again);
    if (!left.empty() && !rests(too_fast, rested)) throw_unexpected(commands.back(), too_fast);
  }
  return answers;
}

BatchAnswer Client::put_jobs(std::string_view data, std::string_view options) {
  using Result = BatchAnswer::Result;
  const std::string command = fmt::format("put-jobs {} {}", data.size(), options);
  const std::string reply = ask_to_put(command, data);
  if (reply == "OTHER_BATCH") return {.result = Result::kOtherBatch};
  constexpr std::string_view kRefused = "REFUSED ";
  if (reply.starts_with(kRefused)) {
    const std::size_t space = std::min(reply.find(' ', kRefused.size()), reply.size());
    const std::string number = reply.substr(0, space);
    return {.result = Result::kRefused,
            .refused = number_after(command, number, "REFUSED"),
            .why = reply.substr(std::min(space + 1, reply.size()))};
  }
  const bool already = reply.starts_with("ALREADY ");
  if (!already && !reply.starts_with("JOBS ")) refuse_put(command, reply, data.size());
  BatchAnswer answer{.result = already ? Result::kAlready : Result::kPut};
  for (auto left = number_after(command, reply, already ? "ALREADY" : "JOBS"); left > 0; --left) {
    const std::string line = stream_.read_line();
    const auto put = put_answer(command, line);
    if (!put) throw_unexpected(command, line);
    answer.jobs.push_back(*put);
  }
  return answer;
}

std::vector<bool> Client::delete_each(std::span<const std::uint64_t> ids) {
  std::vector<bool> deleted;
  ask_all(commands_for("delete", ids), [&](const std::string& command, const std::string& reply) {
    deleted.push_back(whether(command, reply, "DELETED"));
  });
  return deleted;
}

std::vector<std::optional<Job>> Client::peek_each(std::span<const std::uint64_t> ids) {
  std::vector<std::optional<Job>> jobs;
  ask_all(commands_for("peek", ids), [&](const std::string& command, const std::string& reply) {
    jobs.push_back(read_job(command, reply, "FOUND", "NOT_FOUND"));
  });
  return jobs;
}

std::vector<std::optional<StatsFields>> Client::stats_of_each(std::span<const std::uint64_t> ids) {
  std::vector<std::optional<StatsFields>> stats;
  const auto read = [&](const std::string& command, const std::string& reply) {
    stats.push_back(read_stats(command, reply));
  };
  ask_all(commands_for("stats-job", ids), read);
  return stats;
}

std::vector<Job> Client::reserve_now(std::size_t most) {
  std::vector<Job> jobs;
  const std::vector<std::string> commands(most, "reserve-with-timeout 0");
  ask_all(commands, [&](const std::string& command, const std::string& reply) {
    if (reply == "DEADLINE_SOON") return;  // no other job is ready
    if (auto job = read_job(command, reply, "RESERVED", "TIMED_OUT"))
      jobs.push_back(*std::move(job));
  });
  return jobs;
}

// The answer is a line "---", and then "- NAME" for each; beanstalkd 1.13 quotes some names.
std::vector<std::string> Client::tubes() {
  const std::string command = "list-tubes";
  std::vector<std::string> names;
  std::istringstream page(read_data(number_after(command, ask(command), "OK")));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("- ")) continue;
    line.erase(0, 2);
    if (line.size() > 1 && line.front() == '"' && line.back() == '"')
      line = line.substr(1, line.size() - 2);
    names.push_back(line);
  }
  return names;
}

void Client::require(std::string_view verb, const std::string& probe) {
  const std::string reply = ask(probe);
  if (reply == "UNKNOWN_COMMAND") throw_unexpected(verb, reply);
}

}  // namespace carillon::cli
