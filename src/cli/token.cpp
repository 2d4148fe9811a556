// `carillon token`: makes a token, and the line by which the server knows it.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "server/api/tokens.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kTokenExamples = R"(Examples:
  carillon token new --name ci --scope put,work --tube 'mail.*'
      print a new token, and the line for the file of carillon serve --tokens
  carillon token new --name ops --scope admin --file ./tokens > ops.token
      append the line to the file, and print the token alone
  kill -HUP PID
      the server reads its file again

The token is printed once; the file has only its SHA-256. Scopes: read shows
jobs and numbers; put makes, changes and cancels jobs, and sets schedules; work
reserves jobs and ends them; admin does all. Clients show it by --token-file,
the variable CARILLON_TOKEN, or over HTTP by Authorization: Bearer TOKEN.)";

struct TokenRequest {
  std::string action;
  server::Token token;
  std::optional<std::string> file;
};

constexpr std::array<std::string_view, 1> kTokenActions = {"new"};

// Returns what the file has. Throws Failure.
std::string read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 65'536> buffer;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0) throw Failure(fmt::format("cannot read {}: {}", path, error_text(errno)));
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > server::Tokens::kLongestFile)
      throw Failure(fmt::format("{} is no file of tokens: it is too large", path));
  }
}

bool has_name(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string first;
    std::istringstream(line) >> first;
    if (first == name) return true;
  }
  return false;
}

// A new file can be read by its owner alone. The lock keeps out another `carillon token`.
void append_token(const std::string& path, const server::Token& token, const std::string& line) {
  const base::FileDescriptor fd(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX) != 0)
    throw Failure(fmt::format("cannot write {}: {}", path, error_text(errno)));
  const std::string before = read_all(fd.get(), path);
  if (has_name(before, token.name)) {
    throw Failure(
        fmt::format("{} has a token \"{}\" already: choose another name, or delete its line first",
                    path, token.name));
  }
  const bool is_cut = !before.empty() && !before.ends_with('\n');
  const std::string text = (is_cut ? "\n" : "") + line + "\n";
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw Failure(fmt::format("cannot write {}: {}", path, error_text(errno)));
}

int make(const TokenRequest& request) {
  const std::string text = server::make_token();
  const std::string line = server::token_line(request.token, text);
  if (request.file) append_token(*request.file, request.token, line);
  write_out(request.file ? text + "\n" : fmt::format("{}\n{}\n", text, line));
  return kSuccess;
}

}  // namespace

void add_token(CLI::App& command, int& exit_code) {
  TokenRequest& request = set_action(command, exit_code, kTokenExamples, make);
  server::Token& token = request.token;
  add_choice(command, "ACTION", request.action, kTokenActions, "new").required();
  add_value(command, "--name NAME", token.name, server::parse_token_name,
            "Whose it is: for the file, and for refusals")
      .required();
  add_text(
      command, "--scope LIST",
      [&token](const std::string& text) {
        token.scopes = parse_argument("--scope", server::parse_scopes, text);
      },
      "One or more of read, put, work, admin, with commas")
      .required();
  add_text(
      command, "--tube LIST",
      [&token](const std::string& text) {
        token.tubes = parse_argument("--tube", server::parse_tube_patterns, text);
      },
      "The tubes it is good for, with commas; * stands for any text (all)");
  add_text(command, "--file FILE", request.file, "Append the line to this file");
}

}  // namespace carillon::cli
