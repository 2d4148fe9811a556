// The methods of client.h that send many commands together, and those for whole tubes.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <sstream>
#include <utility>

#include "cli/client.h"

namespace carillon::cli {

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

std::vector<std::optional<StatsFields>> Client::stats_of_tubes(std::span<const std::string> tubes) {
  std::vector<std::optional<StatsFields>> stats;
  std::vector<std::string> commands;
  for (const std::string& tube : tubes) commands.push_back("stats-tube " + tube);
  ask_all(commands, [&](const std::string& command, const std::string& reply) {
    stats.push_back(read_stats(command, reply));
  });
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

}  // namespace carillon::cli
