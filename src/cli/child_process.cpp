// Starts a command with fork() and exec, waits for it through a pidfd, and kills it.

#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/error_text.h"
#include "cli/exit_status.h"
#include "cli/process_guard.h"

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
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail("cannot keep the job's body", errno);
    }
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// What the child needs between fork() and exec. This process has other threads, whose locks the
// child can never get: it may allocate nothing there.
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
    // Its number is its own until it is reaped.
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

}  // namespace carillon::cli
