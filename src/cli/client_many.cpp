// The methods of client.h for many jobs, tubes and schedules.

#include "cli/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <iterator>
#include <numeric>
#include <sstream>
#include <utility>

namespace carillon::cli {

namespace {

std::string line_of_batch(std::size_t bytes, const PutOptions& options, const std::string& once) {
  std::string line =
      fmt::format("put-jobs {} pri={} ttr={}ms", bytes, options.priority, options.ttr.count());
  if (options.due_at) {
    line += fmt::format(" due={}", *options.due_at);
  } else {
    line += fmt::format(" delay={}ms", options.delay.count());
  }
  if (!options.named.empty()) line += " " + options.named;
  if (!once.empty()) line += " once=" + once;
  return line;
}

}  // namespace

std::vector<std::string> Client::read_lines(const std::string& command, const std::string& reply,
                                            std::size_t expected) {
  const std::string word = reply.substr(0, reply.find(' '));
  if (number_after(command, reply, word) != expected) throw_unexpected(command, reply);
  std::vector<std::string> lines;
  while (lines.size() < expected) lines.push_back(stream_.read_line());
  return lines;
}

BatchAnswer Client::put_all(const std::vector<std::string>& bodies, const PutOptions& options,
                            const std::string& once) {
  std::string data;
  for (const std::string& body : bodies)
    fmt::format_to(std::back_inserter(data), "{}\r\n{}\r\n", body.size(), body);
  const std::string command = line_of_batch(data.size(), options, once);
  const std::string reply = ask_to_put(command, data);
  constexpr std::string_view kTooMany = " TOO_MANY";
  if (reply.starts_with("REFUSED ") && reply.ends_with(kTooMany)) {
    throw Failure(
        fmt::format("nothing was put: the put-rate of the tube does not let {} jobs in "
                    "at once",
                    bodies.size()));
  }
  if (reply.starts_with("REFUSED ")) throw Failure("nothing was put: job " + reply.substr(8));
  if (reply == "OTHER_BATCH")
    throw Failure(fmt::format("other jobs were put with the token \"{}\"", once));
  if (!reply.starts_with("JOBS ") && !reply.starts_with("ALREADY "))
    refuse_put(command, reply, data.size());

  BatchAnswer answer;
  if (reply.starts_with("ALREADY ")) answer.result = BatchAnswer::Result::kAlready;
  for (const std::string& line : read_lines(command, reply, bodies.size())) {
    const auto job = put_answer(command, line);
    if (!job) throw_unexpected(command, line);
    answer.jobs.push_back(*job);
  }
  return answer;
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

// Those that came too fast are sent once more, after a rest.
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

// A page is a line "---", and then "- NAME" for each; beanstalkd 1.13 quotes some names.
std::vector<std::string> Client::read_names(const std::string& command, const std::string& reply) {
  std::vector<std::string> names;
  std::istringstream page(read_data(number_after(command, reply, "OK")));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("- ")) continue;
    line.erase(0, 2);
    if (line.size() > 1 && line.front() == '"' && line.back() == '"')
      line = line.substr(1, line.size() - 2);
    names.push_back(line);
  }
  return names;
}

std::vector<std::string> Client::tubes() {
  const std::string command = "list-tubes";
  return read_names(command, ask(command));
}

void Client::require(std::string_view verb, const std::string& probe) {
  const std::string reply = ask(probe);
  if (reply == "UNKNOWN_COMMAND") throw_unexpected(verb, reply);
}

namespace {

constexpr std::string_view kBadOption = "BAD_OPTION ";

}  // namespace

// Returns the line of the reply; none if there is no such tube.
std::optional<std::string> Client::ask_with_options(const std::string& command) {
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return std::nullopt;
  if (reply.starts_with(kBadOption)) throw Failure(reply.substr(kBadOption.size()));
  return reply;
}

// The last line of a page tells where the next one begins: {"next":"d1-2","looked_at":3}. It has
// "incomplete":true if jobs may be missing.
std::optional<ListPage> Client::ask_for_page(const std::string& command) {
  const auto reply = ask_with_options(command);
  if (!reply) return std::nullopt;
  ListPage page;
  std::istringstream lines(read_data(number_after(command, *reply, "OK")));
  for (std::string line; std::getline(lines, line);) page.lines.push_back(std::move(line));
  const std::string last = page.lines.empty() ? std::string() : page.lines.back();
  boost::system::error_code error;
  const boost::json::value end = boost::json::parse(last, error);
  const auto* const object = end.if_object();
  const auto* const next = object == nullptr ? nullptr : object->if_contains("next");
  if (next == nullptr) throw_unexpected(command, last);
  if (const auto* const word = next->if_string())
    page.next = std::string(word->data(), word->size());
  page.incomplete = object->contains("incomplete");
  page.lines.pop_back();
  return page;
}

std::optional<ListPage> Client::list_jobs(std::string_view tube, const std::string& options) {
  return ask_for_page(fmt::format("list-jobs {}{}", tube, options));
}

std::optional<ListPage> Client::list_groups(std::string_view tube, const std::string& options) {
  return ask_for_page(fmt::format("list-groups {}{}", tube, options));
}

void Client::set_schedule(std::string_view name, std::string_view options, std::string_view body) {
  const std::string command = fmt::format("set-schedule {} {} {}", name, body.size(), options);
  stream_.send(command + "\r\n");
  stream_.send(body);
  const std::string reply = ask("");
  if (reply == "SCHEDULED") return;
  if (reply.starts_with(kBadOption)) throw Failure(reply.substr(kBadOption.size()));
  if (reply == "BAD_FORMAT") throw Failure("the options are too long: a line has 2048 bytes");
  refuse_put(command, reply, body.size());
}

std::optional<std::string> Client::show_schedule(std::string_view name) {
  const std::string command = fmt::format("show-schedule {}", name);
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return std::nullopt;
  std::string line = read_data(number_after(command, reply, "OK"));
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

std::vector<std::string> Client::schedules() {
  std::vector<std::string> names;
  for (std::size_t before = SIZE_MAX; names.size() != before;) {
    before = names.size();
    const std::string command = names.empty() ? "list-schedules" : "list-schedules " + names.back();
    for (std::string& name : read_names(command, ask(command))) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace carillon::cli
