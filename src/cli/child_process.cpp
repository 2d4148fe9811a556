// Starts a command with posix_spawn(), waits for it through a pidfd, and kills it.

#include "cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
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

// The attributes and file actions for posix_spawn().
class SpawnSettings {
 public:
  explicit SpawnSettings(int standard_input) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, standard_input, STDIN_FILENO);
    ::posix_spawnattr_init(&attributes_);
    // Without this, signals that this process blocks or ignores stay so after the exec.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

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
                           const std::vector<std::string>& extra_environment,
                           std::string_view body) {
  const base::FileDescriptor standard_input = file_in_memory(body);
  const SpawnSettings settings(standard_input.get());
  std::vector<std::string> words = command;
  std::vector<std::string> environment = environment_with(extra_environment);
  const int error =
      ::posix_spawnp(&pid_, words.front().c_str(), settings.actions(), settings.attributes(),
                     pointers_to(words).data(), pointers_to(environment).data());
  if (error != 0) fail(fmt::format("cannot run \"{}\"", words.front()), error);
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

void ChildProcess::kill() {
  if (!running_) return;
  // The process group exists at least until its leader is reaped.
  ::kill(-pid_, SIGKILL);
  reap();
}

void ChildProcess::reap() {
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
  if (signal_ == 0) return fmt::format("exit {}", exit_code_);
  const char* description = ::sigdescr_np(signal_);
  return fmt::format("signal {} ({})", signal_,
                     description != nullptr ? lower_first(description) : "real-time");
}

}  // namespace carillon::cli
