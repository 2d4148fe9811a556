// The commands for many jobs and tubes (client.h).

#include <fmt/format.h>

#include <boost/json.hpp>
#include <sstream>
#include <utility>

#include "cli/client.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kRefused = "BAD_OPTION ";

}  // namespace

// Returns the line of the reply; none if there is no such tube.
std::optional<std::string> Client::ask_with_options(const std::string& command) {
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return std::nullopt;
  if (reply.starts_with(kRefused)) throw Failure(reply.substr(kRefused.size()));
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

// "CHANGED <changed> <left> <next> [incomplete]", or WOULD_CHANGE after a dry run.
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
  answer.incomplete = words >> word && word == "incomplete";
  return answer;
}

std::optional<std::string> Client::due_counts(std::string_view tube, const std::string& options) {
  const std::string command = fmt::format("due-counts {}{}", tube, options);
  const auto reply = ask_with_options(command);
  if (!reply) return std::nullopt;
  return read_data(number_after(command, *reply, "OK"));
}

}  // namespace carillon::cli
