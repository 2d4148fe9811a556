// The commands for many jobs and tubes (client.h).

#include <fmt/format.h>

#include <boost/json.hpp>
#include <sstream>

#include "cli/client.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kRefused = "BAD_OPTION ";

}  // namespace

// The data is a line "---", and then "- NAME" for each.
// Returns the line of the reply; none if there is no such tube.
std::optional<std::string> Client::ask_with_options(const std::string& command) {
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return std::nullopt;
  if (reply.starts_with(kRefused)) throw Failure(reply.substr(kRefused.size()));
  return reply;
}

std::optional<JobLines> Client::list_jobs(std::string_view tube, const std::string& options) {
  const std::string command = fmt::format("list-jobs {}{}", tube, options);
  const auto reply = ask_with_options(command);
  if (!reply) return std::nullopt;
  JobLines page{.lines = read_data(number_after(command, *reply, "OK")), .next = {}};
  const std::size_t line_end = page.lines.find_last_of('\n', page.lines.size() - 2);
  const std::size_t last = line_end == std::string::npos ? 0 : line_end + 1;
  boost::system::error_code error;
  const boost::json::value end =
      boost::json::parse(std::string_view(page.lines).substr(last), error);
  const auto* const object = end.if_object();
  const auto* const next = object == nullptr ? nullptr : object->if_contains("next");
  if (next == nullptr) throw_unexpected(command, page.lines.substr(last));
  if (const auto* const word = next->if_string())
    page.next = std::string(word->data(), word->size());
  page.lines.resize(last);
  return page;
}

// "CHANGED <changed> <left> <next>", or WOULD_CHANGE after a dry run.
std::optional<BulkAnswer> Client::change_jobs(std::string_view verb, std::string_view tube,
                                              const std::string& options) {
  const std::string command = fmt::format("{} {}{}", verb, tube, options);
  const auto reply = ask_with_options(command);
  if (!reply) return std::nullopt;
  std::istringstream words(*reply);
  std::string word;
  std::string next;
  BulkAnswer answer;
  words >> word >> answer.changed >> answer.left >> next;
  if (!words || (word != "CHANGED" && word != "WOULD_CHANGE")) throw_unexpected(command, *reply);
  if (next != "end") answer.next = next;
  return answer;
}

std::optional<std::string> Client::due_counts(std::string_view tube, const std::string& options) {
  const std::string command = fmt::format("due-counts {}{}", tube, options);
  const auto reply = ask_with_options(command);
  if (!reply) return std::nullopt;
  return read_data(number_after(command, *reply, "OK"));
}

}  // namespace carillon::cli
