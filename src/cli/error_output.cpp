// Passes standard error on, and remembers its last line.

#include "cli/error_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "cli/error_text.h"
#include "cli/exit_status.h"

namespace carillon::cli {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Nobody can be told if this fails.
void write_error(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

ErrorOutput::ErrorOutput() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Failure(fmt::format("cannot read the commands' errors: {}", error_text(errno)));
  read_ = base::FileDescriptor(ends[0]);
  written_ = base::FileDescriptor(ends[1]);
  // Of this end alone: the commands write as to any pipe.
  ::fcntl(read_.get(), F_SETFL, O_NONBLOCK);
  // Signals are for other threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { pass_on(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ErrorOutput::~ErrorOutput() {
  stop_.set();
  thread_.join();
}

void ErrorOutput::pass_on() {
  try {
    while (true) {
      wait_for(read_.get(), POLLIN, std::nullopt, stop_.fd());
      const std::lock_guard lock(mutex_);
      empty_the_pipe();
    }
  } catch (const std::exception&) {
    // It is to stop.
  }
}

// Reads no more than a pipe holds, so that a command that writes without an end holds up nobody.
void ErrorOutput::empty_the_pipe() {
  std::array<char, 65'536> buffer;
  const ssize_t count = ::read(read_.get(), buffer.data(), buffer.size());
  if (count <= 0) return;
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  write_error(bytes);
  remember(bytes);
}

void ErrorOutput::remember(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    line_.append(part.substr(0, kMost - std::min(kMost, line_.size())));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!is_blank(line_)) last_ = std::move(line_);
    line_.clear();
  }
}

void ErrorOutput::begin() {
  const std::lock_guard lock(mutex_);
  empty_the_pipe();
  line_.clear();
  last_.clear();
}

std::string ErrorOutput::last_line() {
  const std::lock_guard lock(mutex_);
  empty_the_pipe();
  std::string line = is_blank(line_) ? last_ : line_;
  while (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace carillon::cli
