// The commands for many jobs (client.h).

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/client.h"

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

// Who may not look at the tube learns it from the refusal of a batch.
std::size_t Client::most_in_batch(std::string_view tube, std::size_t most) try {
  const auto stats = stats_tube(tube);
  if (!stats || !stats->has("put-burst")) return most;
  return std::min<std::size_t>(most, stats->number("put-burst"));
} catch (const Forbidden&) {
  return most;
}

std::vector<bool> Client::delete_jobs(const std::vector<std::uint64_t>& ids) {
  std::vector<bool> deleted;
  const std::string data = fmt::format("{}", fmt::join(ids, " "));
  const std::string command = fmt::format("delete-jobs {}", data.size());
  const std::string reply = ids.size() > 1 ? ask(command + "\r\n" + data) : "";
  if (reply.starts_with("JOBS ")) {
    for (const std::string& line : read_lines(command, reply, ids.size())) {
      if (line.starts_with("INTERNAL_ERROR ")) throw_unexpected(command, "INTERNAL_ERROR");
      deleted.push_back(line.starts_with("DELETED "));
    }
    return deleted;
  }
  if (reply == "UNKNOWN_COMMAND") {
    stream_.read_line();  // the ids are no command, either
  } else if (!reply.empty()) {
    throw_unexpected(command, reply);
  }
  for (const std::uint64_t id : ids) deleted.push_back(delete_job(id));
  return deleted;
}

}  // namespace carillon::cli
