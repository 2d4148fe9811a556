// Tests of commands that run for a job: their input, environment, end, and how they are killed.

#include "cli/child_process.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "cli/exit_status.h"
#include "cli/wait.h"

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

// Runs `sh -c script` with `body` as its standard input, and returns describe_end().
std::string end_of(const std::string& script, std::string_view body = "",
                   const std::vector<std::string>& extra = {}) {
  ChildProcess child({"sh", "-c", script}, extra, body);
  EXPECT_TRUE(child.wait(30s, -1));
  return child.describe_end();
}

TEST(ChildProcess, ExitCodes) {
  ChildProcess good({"true"}, {}, "");
  ASSERT_TRUE(good.wait(30s, -1));
  EXPECT_TRUE(good.succeeded());
  EXPECT_EQ(good.describe_end(), "exit status 0");

  ChildProcess bad({"sh", "-c", "exit 3"}, {}, "");
  ASSERT_TRUE(bad.wait(30s, -1));
  EXPECT_FALSE(bad.succeeded());
  EXPECT_EQ(bad.describe_end(), "exit status 3");
}

TEST(ChildProcess, HasTheLimitOfDescriptorsThatWasNotRaised) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_descriptor_limit();
  rlimit raised{};
  ::getrlimit(RLIMIT_NOFILE, &raised);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  EXPECT_EQ(end_of("test $(ulimit -n) = 256"), "exit status 0");
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(ChildProcess, ASignalIsAFailure) {
  ChildProcess child({"sh", "-c", "kill -SEGV $$"}, {}, "");
  ASSERT_TRUE(child.wait(30s, -1));
  EXPECT_FALSE(child.succeeded());
  EXPECT_EQ(child.describe_end(), "killed by signal 11 (SIGSEGV)");
}

TEST(ChildProcess, TheBodyIsItsStandardInput) {
  EXPECT_EQ(end_of("test \"$(cat)\" = hello", "hello"), "exit status 0");
  EXPECT_EQ(end_of("test $(wc -c) = 4", "\0\r\n\xFF"s), "exit status 0");
  EXPECT_EQ(end_of("test -z \"$(cat)\"", ""), "exit status 0");
}

TEST(ChildProcess, ABodyThatIsNeverReadDoesNotBlock) {
  EXPECT_EQ(end_of("exit 0", std::string(8 << 20, 'x')), "exit status 0");
  EXPECT_EQ(end_of("test $(wc -c) = 8388608", std::string(8 << 20, 'x')), "exit status 0");
}

TEST(ChildProcess, ExtraEnvironmentIsAddedAndTakesPrecedence) {
  ::setenv("CARILLON_TEST_A", "parent", 1);
  ::setenv("CARILLON_TEST_B", "parent", 1);
  EXPECT_EQ(end_of("test \"$CARILLON_TEST_A $CARILLON_TEST_B\" = 'parent child'", "",
                   {"CARILLON_TEST_B=child"}),
            "exit status 0");
}

TEST(ChildProcess, WaitEndsWithItsLimit) {
  ChildProcess child({"sleep", "60"}, {}, "");
  EXPECT_FALSE(child.wait(20ms, -1));
  child.kill();
  EXPECT_EQ(child.describe_end(), "killed by signal 9 (SIGKILL)");
}

TEST(ChildProcess, WaitEndsWithTheEvent) {
  ChildProcess child({"sleep", "60"}, {}, "");
  Event event;
  event.set();
  EXPECT_THROW(child.wait(std::nullopt, event.fd()), Interrupted);
}

// The shell and its child hold the pipe's writing end: the read returns 0 when both are gone.
TEST(ChildProcess, KillReachesTheWholeProcessGroup) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);  // inherited: not close-on-exec
  const base::FileDescriptor reading(ends[0]);
  {
    const base::FileDescriptor writing(ends[1]);
    ChildProcess child(
        {"sh", "-c", "echo started >&" + std::to_string(ends[1]) + "; sleep 60; true"}, {}, "");
    std::array<char, 8> text{};
    ASSERT_EQ(::read(reading.get(), text.data(), text.size()), 8);
  }  // the destructor kills the command
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);
}

TEST(ChildProcess, BlockedAndIgnoredSignalsAreNotInherited) {
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const auto handler = ::signal(SIGINT, SIG_IGN);
  EXPECT_EQ(end_of("kill -TERM $$; exit 0"), "killed by signal 15 (SIGTERM)");
  EXPECT_EQ(end_of("kill -INT $$; exit 0"), "killed by signal 2 (SIGINT)");
  ::signal(SIGINT, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ChildProcess, AFailedStartSaysWhy) {
  try {
    const ChildProcess child({"/nowhere/program"}, {}, "");
    FAIL() << "no error";
  } catch (const Failure& error) {
    EXPECT_STREQ(error.what(), "cannot run \"/nowhere/program\": no such file or directory");
  }
}

TEST(ChildProcess, ProgramsAreFoundAsTheShellFindsThem) {
  EXPECT_TRUE(find_program("sh").ends_with("/sh"));
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program-anywhere"), "");
  EXPECT_EQ(find_program(""), "");
  EXPECT_EQ(find_program("/bin"), "");         // a directory
  EXPECT_EQ(find_program("/etc/passwd"), "");  // not executable
}

}  // namespace
}  // namespace carillon::cli
