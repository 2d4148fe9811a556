// An epoll loop with a timing wheel: it closes connections that are silent for 100 ms. One thread,
// and one descriptor for all timers.

#include <carillon/timer/wheel_descriptor.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>

namespace {

using namespace std::chrono_literals;

constexpr auto kIdleLimit = 100ms;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// One end of a conversation. Its timer is part of it, so arming allocates nothing.
struct Connection : carillon::TimerNode {
  Connection(std::string who, int descriptor) : name(std::move(who)), socket(descriptor) {}
  std::string name;
  int socket;
};

class Loop {
 public:
  Loop() {
    if (epoll_ < 0) fail("epoll_create1");
    watch(timers_.descriptor(), nullptr);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { ::close(epoll_); }

  void add(Connection& connection) {
    watch(connection.socket, &connection);
    timers_.schedule_after(connection, kIdleLimit);
  }

  // Returns when all connections are closed.
  void run() {
    std::array<epoll_event, 64> events{};
    while (!timers_.empty()) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0) fail("epoll_wait");
      bool due = false;
      for (int i = 0; i < count; ++i) {
        auto* connection = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
        connection != nullptr ? read(*connection) : void(due = true);
      }
      // After all reads: a connection that sent something at the last moment is not closed.
      if (due)
        timers_.dispatch(
            [this](carillon::TimerNode& node) { drop(static_cast<Connection&>(node)); });
    }
  }

 private:
  void watch(int descriptor, Connection* connection) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connection;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
  }

  void read(Connection& connection) {
    std::array<char, 256> data{};
    const ssize_t size = ::read(connection.socket, data.data(), data.size());
    if (size < 0) fail("read");
    if (size == 0) return hang_up(connection);
    std::printf("%s said %.*s\n", connection.name.c_str(), static_cast<int>(size), data.data());
    timers_.reschedule_after(connection, kIdleLimit);  // to a later time: one store, no system call
  }

  void hang_up(Connection& connection) {
    timers_.cancel(connection);
    std::printf("%s hung up\n", connection.name.c_str());
    ::close(connection.socket);
  }

  void drop(Connection& connection) const {
    std::printf("%s was silent and is gone\n", connection.name.c_str());
    ::close(connection.socket);  // this also removes it from epoll
  }

  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  carillon::WheelDescriptor<> timers_;
};

}  // namespace

int main() {
  Loop loop;
  std::list<Connection> connections;
  std::array<int, 2> ada{};
  std::array<int, 2> grace{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ada.data()) != 0) fail("socketpair");
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, grace.data()) != 0) fail("socketpair");
  loop.add(connections.emplace_back("ada", ada[0]));
  loop.add(connections.emplace_back("grace", grace[0]));

  ::usleep(20'000);
  if (::write(grace[1], "hello", 5) != 5) fail("write");  // ada says nothing
  loop.run();
  return 0;
}
