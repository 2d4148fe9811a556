// The terminal as a screen (terminal.h).
#include "cli/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "cli/exit_status.h"
#include "cli/output.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // the second screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";
constexpr char kCtrlZ = 0x1a;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value != nullptr ? value : "";
}

}  // namespace

bool has_screen() {
  const std::string_view kind = variable("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && !kind.empty() &&
         kind != "dumb";
}

bool wants_colours() {
  return ::isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

Screen::Screen() {
  if (::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw Failure(fmt::format("cannot ask the terminal: {}", error_text(errno)));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGWINCH);
  ::pthread_sigmask(SIG_BLOCK, &set, &signals_before_);
  resized_ = base::FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!resized_) {
    ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
    throw Failure(fmt::format("cannot wait for signals: {}", error_text(errno)));
  }
  enter();
}

Screen::~Screen() {
  try {
    leave();
  } catch (const Failure&) {  // the terminal is gone
  }
  ::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

void Screen::enter() {
  termios now = before_;
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  now.c_cc[VQUIT] = now.c_cc[VSUSP] = _POSIX_VDISABLE;
  now.c_cc[VMIN] = 1;
  now.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
  write_bytes(kEnter);
}

void Screen::leave() {
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  write_bytes(kLeave);
}

ScreenSize Screen::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

void Screen::draw(const std::vector<std::string>& lines) {
  std::string text(kHome);
  const std::size_t rows = std::min(lines.size(), size().rows);
  for (std::size_t row = 0; row < rows; ++row) {
    text.append(row > 0 ? "\r\n" : "").append(lines[row]).append(kClearLine);
  }
  write_bytes(text.append(kClearBelow));
}

Screen::Event Screen::wait(std::chrono::milliseconds patience, int stop_fd) {
  pollfd all[] = {{.fd = stop_fd, .events = POLLIN, .revents = 0},
                  {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                  {.fd = resized_.get(), .events = POLLIN, .revents = 0}};
  if (::poll(all, std::size(all), static_cast<int>(patience.count())) <= 0) return Event::kTime;
  if (all[0].revents != 0) return Event::kStop;
  if (all[1].revents != 0) return take_key();
  signalfd_siginfo info;
  while (::read(resized_.get(), &info, sizeof info) > 0) {
  }
  return Event::kResized;
}

Screen::Event Screen::take_key() {
  if (::read(STDIN_FILENO, &key_, 1) != 1) return Event::kStop;  // the terminal is gone
  if (key_ != kCtrlZ) return Event::kKey;
  leave();
  ::raise(SIGSTOP);
  enter();
  return Event::kResized;
}

}  // namespace carillon::cli
