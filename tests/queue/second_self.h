// Runs the current test once more, in a process of its own that may be killed.
//
//   TEST(Crash, LosesNothing) {
//     if (SecondSelf::is_this()) return write_until_killed(SecondSelf::argument());
//     SecondSelf writer(directory / "data");
//     ... writer.read<int>() ... writer.kill();
//   }
//
// A plain fork would not do: RocksDB's threads do not live on in the child.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace carillon::queue {

class SecondSelf {
 public:
  explicit SecondSelf(const std::string& argument) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    from_it_ = pipe[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe[1], kPipe);
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string filter =
        std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
    std::string name = "second-self";
    std::string brief = "--gtest_brief=1";
    char* arguments[] = {name.data(), filter.data(), brief.data(), nullptr};
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
      environment.push_back(*variable);
    std::string told = std::string(kVariable) + "=" + argument;
    environment.push_back(told.data());
    environment.push_back(nullptr);
    const int error = ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments,
                                    environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipe[1]);
    if (error != 0) throw std::runtime_error("cannot start this program again");
  }
  ~SecondSelf() {
    kill();
    ::close(from_it_);
  }
  SecondSelf(const SecondSelf&) = delete;
  SecondSelf& operator=(const SecondSelf&) = delete;

  // Returns the next value that the second self tells; none if it is gone and all was read.
  template <class Value>
  std::optional<Value> read() {
    Value value;
    if (::read(from_it_, &value, sizeof value) != sizeof value) return std::nullopt;
    return value;
  }

  void kill() {
    if (process_ > 0) ::kill(process_, SIGKILL);
    wait();
  }
  // Waits for its end, and returns its status as waitpid gives it: 0 if it ended well.
  int wait() {
    if (process_ > 0) ::waitpid(process_, &status_, 0);
    process_ = 0;
    return status_;
  }
  pid_t process() const { return process_; }

  // --- To be called in the second self.
  static bool is_this() { return std::getenv(kVariable) != nullptr; }
  static std::string argument() { return std::getenv(kVariable); }
  template <class Value>
  static void tell(const Value& value) {
    if (::write(kPipe, &value, sizeof value) != sizeof value) ::_exit(1);
  }

 private:
  static constexpr const char* kVariable = "CARILLON_SECOND_SELF";
  static constexpr int kPipe = 3;

  pid_t process_ = 0;
  int status_ = 0;
  int from_it_ = -1;
};

}  // namespace carillon::queue
