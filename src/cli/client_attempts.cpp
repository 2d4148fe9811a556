// The commands of workers for attempts that fail, and those that change jobs which nobody has
// reserved (client.h).

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kBadOption = "BAD_OPTION ";
constexpr std::string_view kItem = "- ";
constexpr std::string_view kIndent = "  ";

}  // namespace

bool Client::name(std::string_view name) {
  const std::string command = fmt::format("name-client {}", name);
  const std::string reply = ask(command);
  knows_own_verbs_ = reply != "UNKNOWN_COMMAND";
  if (knows_own_verbs_ && reply != "NAMED") throw_unexpected(command, reply);
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

ChangeAnswer Client::ask_to_change(const std::string& command, std::string_view done,
                                   const std::optional<std::string>& body) {
  if (body) stream_.send(command + "\r\n" + *body);
  const std::string reply = ask(body ? "" : command);
  if (reply.starts_with(done)) return ChangeAnswer::kDone;
  if (reply.starts_with("IS_RESERVED ")) return ChangeAnswer::kReserved;
  if (reply == "NOT_FOUND") return ChangeAnswer::kNone;
  if (reply == "OUT_OF_RANGE")
    throw Failure("the job would be due after the year 9999; the server refused it");
  if (reply.starts_with(kBadOption)) throw Failure(reply.substr(kBadOption.size()));
  if (body) refuse_put(command, reply, body->size());
  throw_unexpected(command, reply);
}

ChangeAnswer Client::bury_job(const std::string& job, const std::string& options) {
  return ask_to_change(fmt::format("bury-job {}{}{}", job, options.empty() ? "" : " ", options),
                       "BURIED ");
}

ChangeAnswer Client::patch(const std::string& job, const std::string& options,
                           const std::optional<std::string>& body) {
  std::string command = fmt::format("patch-job {}{}{}", job, options.empty() ? "" : " ", options);
  if (body) command += fmt::format(" body={}", body->size());
  return ask_to_change(command, "PATCHED ", body);
}

bool Client::pause_tube(std::string_view tube, std::uint32_t seconds) {
  return ask_whether(fmt::format("pause-tube {} {}", tube, seconds), "PAUSED");
}

void Client::set_tube(std::string_view tube, const std::string& options) {
  const std::string command = fmt::format("set-tube {} {}", tube, options);
  const std::string reply = ask(command);
  if (reply.starts_with(kBadOption)) throw Failure(reply.substr(kBadOption.size()));
  if (reply != "SET") throw_unexpected(command, reply);
}

std::optional<Job> Client::peek(const std::string& job) {
  const std::string command = fmt::format("peek-job {}", job);
  return read_job(command, ask(command), "FOUND", "NOT_FOUND");
}

std::optional<StatsFields> Client::show_job(const std::string& job) {
  return ask_stats(fmt::format("show-job {}", job));
}

std::optional<StatsFields> Client::show_job(std::uint64_t id) {
  return knows_own_verbs_ ? show_job(std::to_string(id)) : stats_job(id);
}

// The reply is a line "---", and then the fields of each attempt: the first after "- ", the others
// after two spaces.
std::vector<StatsFields> Client::story(std::uint64_t id) {
  const std::string command = fmt::format("story-job {}", id);
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return {};
  std::istringstream lines(read_data(number_after(command, reply, "OK")));
  std::vector<std::string> attempts;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kItem)) attempts.emplace_back("---\n");
    if (line.size() > kIndent.size() && !attempts.empty())
      attempts.back() += line.substr(kIndent.size()) + "\n";
  }
  std::vector<StatsFields> story;
  for (const std::string& attempt : attempts) story.push_back(parse_stats(attempt));
  return story;
}

}  // namespace carillon::cli
