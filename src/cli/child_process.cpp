// Starts a command with fork() and exec, waits for it through a pidfd, and kills it; forks the
// guard; passes on what commands write to standard error.

#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/file_io.h"
#include "cli/exit_status.h"

// POSIX requires the program to declare it. NOLINTNEXTLINE(readability-redundant-declaration)
extern char** environ;

namespace carillon::cli {
namespace {

[[noreturn]] void fail(std::string_view what, int error) {
  throw Failure(fmt::format("{}: {}", what, error_text(error)));
}

// C++ cannot link to pidfd_open() of glibc 2.36: the header declares it without extern "C".
base::FileDescriptor open_pid(pid_t pid) {
  return base::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

base::FileDescriptor file_in_memory(std::string_view bytes) {
  base::FileDescriptor file(::memfd_create("carillon-job", MFD_CLOEXEC));
  if (!file) fail("cannot keep the job's body", errno);
  const int error = base::write_at(file.get(), bytes, 0);
  if (error != 0) fail("cannot keep the job's body", error);
  return file;
}

// The data that the child needs between fork() and exec. This process has other threads, whose
// locks the child can never get: it may allocate nothing there.
struct Start {
  const char* program;
  char* const* words;
  char* const* environment;
  int standard_input;
  int standard_error;
  const ProcessGuard* guard;
  pid_t parent;
  int report;  // gets errno if the program does not start
};

void use_default_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The limit of descriptors that commands have; none: this process's own.
std::optional<rlimit> limit_of_children;

[[noreturn]] void become(const Start& start) {
  const auto give_up = [&start] {
    const int error = errno;
    if (::write(start.report, &error, sizeof error) < 0) ::_exit(kFailure + 1);
    ::_exit(kFailure);
  };
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The worker may have died before that call; then nobody would send the signal.
  if (::getppid() != start.parent) ::_exit(kFailure);
  if (start.guard != nullptr) start.guard->watch(::getpid());
  use_default_signals();
  if (limit_of_children) ::setrlimit(RLIMIT_NOFILE, &*limit_of_children);
  if (::dup2(start.standard_input, STDIN_FILENO) < 0) give_up();
  if (start.standard_error >= 0 && ::dup2(start.standard_error, STDERR_FILENO) < 0) give_up();
  ::execve(start.program, start.words, start.environment);
  give_up();
  ::_exit(kFailure);
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// Returns this process's environment, with the variables of `extra` added or replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> all = extra;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool replaced = false;
    for (const std::string& one : extra) replaced = replaced || name_of(one) == name_of(*variable);
    if (!replaced) all.emplace_back(*variable);
  }
  return all;
}

// Returns a null-terminated array of pointers, as exec takes it. The strings must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool is_executable_file(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0 && ::access((path + "/.").c_str(), F_OK) != 0;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (!limit_of_children) limit_of_children = limit;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_executable_file(name) ? name : "";
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/bin:/usr/bin";
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (!name.empty() && is_executable_file(candidate)) return candidate;
    if (colon == std::string_view::npos) return "";
    path.remove_prefix(colon + 1);
  }
}

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::vector<std::string>& extra_environment, std::string_view body,
                           const ChildSettings& settings)
    : guard_(settings.guard) {
  const base::FileDescriptor standard_input = file_in_memory(body);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot start a command", errno);
  const base::FileDescriptor report(ends[0]);
  base::FileDescriptor childs_report(ends[1]);
  std::vector<std::string> words = command;
  std::vector<std::string> environment = environment_with(extra_environment);
  const std::string program = find_program(words.front());
  const std::vector<char*> word_pointers = pointers_to(words);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const Start start{.program = program.empty() ? words.front().c_str() : program.c_str(),
                    .words = word_pointers.data(),
                    .environment = environment_pointers.data(),
                    .standard_input = standard_input.get(),
                    .standard_error = settings.standard_error,
                    .guard = guard_,
                    .parent = ::getpid(),
                    .report = childs_report.get()};
  pid_ = ::fork();
  if (pid_ == 0) become(start);
  if (pid_ < 0) fail(fmt::format("cannot run \"{}\"", words.front()), errno);
  childs_report = base::FileDescriptor();
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(report.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (count > 0) {
    reap();
    fail(fmt::format("cannot run \"{}\"", words.front()), error);
  }
  pid_fd_ = open_pid(pid_);
  if (!pid_fd_) {
    const int reason = errno;
    kill();
    fail("cannot watch the command", reason);
  }
}

ChildProcess::~ChildProcess() {
  if (running_) kill();
}

bool ChildProcess::wait(Patience limit, int interrupt_fd) {
  if (!running_) return true;
  if (!wait_for(pid_fd_.get(), POLLIN, limit, interrupt_fd)) return false;
  reap();
  return true;
}

void ChildProcess::terminate() {
  if (running_) ::kill(-pid_, SIGTERM);
}

void ChildProcess::kill() {
  if (!running_) return;
  // The process group exists at least until its leader is reaped.
  ::kill(-pid_, SIGKILL);
  reap();
}

void ChildProcess::reap() {
  if (guard_ != nullptr) {
    // No other process gets this number before the child is reaped.
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR) {
    }
    guard_->forget(pid_);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  running_ = false;
  if (WIFSIGNALED(status)) {
    signal_ = WTERMSIG(status);
  } else {
    exit_code_ = WEXITSTATUS(status);
  }
}

std::string ChildProcess::describe_end() const {
  if (signal_ == 0) return fmt::format("exit status {}", exit_code_);
  const char* name = ::sigabbrev_np(signal_);
  return name != nullptr ? fmt::format("killed by signal {} (SIG{})", signal_, name)
                         : fmt::format("killed by signal {}", signal_);
}

// --- The guard. It gets the numbers of process groups: a positive one to watch a group, the
// negative one to forget it.

namespace {

// Keeps nothing of the worker open, so that whoever waits for the end of its output does not wait
// for the guard.
void let_go_of_all(int but) {
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  ::dup2(but, STDERR_FILENO + 1);
  ::close_range(STDERR_FILENO + 2, ~0U, 0);
  if (::chdir("/") != 0) return;  // else the worker's directory could not be unmounted
}

[[noreturn]] void stand_guard(int from_worker) {
  ::setsid();
  ::prctl(PR_SET_NAME, "carillon-guard");
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) std::signal(number, SIG_IGN);
  let_go_of_all(from_worker);
  std::set<pid_t> groups;
  pid_t told = 0;
  while (true) {
    const ssize_t count = ::recv(STDERR_FILENO + 1, &told, sizeof told, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof told) break;
    if (told > 0) groups.insert(told);
    if (told < 0) groups.erase(-told);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

// If the guard is gone, the commands do without.
void tell(int fd, pid_t what) {
  while (::send(fd, &what, sizeof what, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace

ProcessGuard::ProcessGuard() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Failure(fmt::format("cannot guard commands: {}", error_text(errno)));
  const base::FileDescriptor guards(ends[0]);
  to_guard_ = base::FileDescriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) stand_guard(guards.get());
  if (pid_ < 0) throw Failure(fmt::format("cannot guard commands: {}", error_text(errno)));
}

ProcessGuard::~ProcessGuard() {
  to_guard_ = base::FileDescriptor();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ProcessGuard::watch(pid_t group) const noexcept {
  tell(to_guard_.get(), group);
}

void ProcessGuard::forget(pid_t group) const noexcept {
  tell(to_guard_.get(), -group);
}

// --- Standard error.

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
  // Only this end does not block: the commands write as to any pipe.
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
    // The destructor has stopped the thread.
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
