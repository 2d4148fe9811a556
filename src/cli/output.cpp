// Reads standard input and writes standard output and error.

#include "cli/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "cli/exit_status.h"
#include "cli/json_fields.h"
#include "server/text/json_value.h"
#include "server/text/visible_text.h"

namespace carillon::cli {
namespace {

// Returns the reason of an error on a standard descriptor. EBADF means that it was closed at the
// start (main.cpp).
std::string reason(int error) {
  return error == EBADF ? "it is closed" : error_text(error);
}

}  // namespace

void write_out(std::string_view text) {
  write_bytes(server::visible(text, server::kLineFormat));
}

void write_bytes(std::string_view bytes) {
  errno = 0;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (written && std::fflush(stdout) == 0) return;
  throw Failure(fmt::format("cannot write to standard output: {}", reason(errno)));
}

void write_fields(const boost::json::object& fields, bool as_json) {
  if (as_json) return write_result(as_json, fields, "");
  std::size_t width = 0;
  for (const auto& field : fields) width = std::max(width, field.key().size());
  std::string table;
  for (const auto& [name, value] : fields) {
    table +=
        fmt::format("{:<{}}  {}\n", std::string_view(name), width, server::visible(text_of(value)));
  }
  write_out(table);
}

void write_result(bool as_json, const boost::json::object& object, std::string_view text) {
  write_out((as_json ? server::json_text(object) : std::string(text)) + "\n");
}

void write_body(std::string_view body) {
  if (::isatty(STDOUT_FILENO) != 1) return write_bytes(body);
  write_out(body);
  if (!body.ends_with('\n')) write_out("\n");
}

void remark(std::string_view line) {
  const std::string text = server::visible(line, server::kLineFormat) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void WaitNotice::before(std::chrono::milliseconds wait, std::string_view why) {
  waited_ += wait;
  if (told_ || waited_ <= std::chrono::seconds(1)) return;
  told_ = true;
  remark(fmt::format("waiting: {}", why));
}

void remark_missing_jobs(std::string_view tube) {
  remark(fmt::format(
      "jobs of tube {} may be missing: a file of the server is damaged, and their records cannot "
      "be read; stop it, and save what is whole: carillon check --data DIR --salvage NEW",
      tube));
}

std::string listed(const std::set<std::string>& names) {
  constexpr std::size_t kMost = 10;
  const auto end = std::next(names.begin(), static_cast<int>(std::min(names.size(), kMost)));
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  return names.size() <= kMost ? text : fmt::format("{} and {} more", text, names.size() - kMost);
}

std::string read_some_input() {
  std::array<char, 65'536> buffer;
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count >= 0) return {buffer.data(), static_cast<std::size_t>(count)};
    if (errno != EINTR) throw Failure(fmt::format("cannot read standard input: {}", reason(errno)));
  }
}

std::string read_standard_input(std::size_t most) {
  std::string text;
  while (text.size() <= most) {
    const std::string more = read_some_input();
    if (more.empty()) return text;
    text += more;
  }
  throw Failure(fmt::format(
      "standard input has more than {} bytes, the most that any server takes as a body", most));
}

std::string body_or_standard_input(const std::optional<std::string>& body, std::size_t most) {
  if (body && *body != "-") return *body;
  if (::isatty(STDIN_FILENO) == 1) remark("reading the body from the terminal; end it with Ctrl-D");
  std::string text = read_standard_input(most);
  if (text.empty() && !body)
    throw UsageError("standard input is empty, and there is no BODY; for an empty one write \"\"");
  return text;
}

}  // namespace carillon::cli
