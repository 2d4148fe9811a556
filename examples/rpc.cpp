// Remote calls over TCP that time out and are sent again: a server and a client on 127.0.0.1. The
// server answers "ping" at once, the first attempt of "slow" too late, and "never" not at all.
//
// Each attempt has an id, an entry in the table of pending calls, and a timer of a
// carillon::TimerService. A reply or a time-out takes the call out of the table. The one that takes
// the call out has won. The other finds it gone and does nothing. So each call ends exactly once,
// and a late reply is dropped.
//
// bench/rpc is the load program: 100 000 such calls at a time.

#include <carillon/timer/timer_service.h>

#include <atomic>
#include <boost/asio.hpp>
#include <chrono>
#include <cstdio>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kTimeout{100};  // attempt 1; each further one has twice as long

// A request is a line "<id> <question>", a reply a line "<id> <answer>".
void send_line(tcp::socket& socket, int id, const std::string& text) {
  error_code ignored;  // a request or reply that is lost is one more time-out
  net::write(socket, net::buffer(std::to_string(id) + " " + text + "\n"), ignored);
}

// Calls on_line(id, text) for each line, until the other side closes.
template <class F>
void read_lines(tcp::socket& socket, F&& on_line) {
  error_code end;
  std::string input;
  while (const auto size = net::read_until(socket, net::dynamic_buffer(input), '\n', end)) {
    const std::size_t space = input.find(' ');
    on_line(std::stoi(input), input.substr(space + 1, size - space - 2));
    input.erase(0, size);
  }
}

void serve(tcp::socket socket) {
  std::optional<int> slow;  // the first attempt; its answer waits until the client asks again
  read_lines(socket, [&](int id, const std::string& question) {
    if (question == "never") return;
    if (question == "slow" && !slow) {
      slow = id;
      return;
    }
    if (question == "slow") send_line(socket, *slow, "too late");
    send_line(socket, id, "pong");
  });
}

class Caller {
 public:
  Caller(tcp::socket& socket, std::ptrdiff_t calls) : left(calls), socket_(socket) {}

  void ask(std::string question) { send({.question = std::move(question)}); }

  void on_reply(int id, const std::string& answer) {
    std::optional<Call> call = take(id);
    if (!call) {
      ++late;
      std::printf("dropped a late reply: %s\n", answer.c_str());
      return;
    }
    call->timer.cancel();  // if that fails, the time-out is running and finds the call gone
    std::printf("%s: %s at attempt %d\n", call->question.c_str(), answer.c_str(), call->attempts);
    ++answered;
    left.count_down();
  }

  std::latch left;  // calls that have not ended
  std::atomic<int> answered{0}, failed{0}, late{0};

 private:
  struct Call {
    std::string question;
    int attempts = 0;
    carillon::TimerHandle timer = {};
  };

  std::optional<Call> take(int id) {
    const std::scoped_lock lock(mutex_);
    const auto found = pending_.extract(id);
    return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
  }

  void send(Call call) {
    const std::scoped_lock lock(mutex_);
    const int id = ++last_id_;  // a reply to an earlier attempt must not find this one
    const auto timeout = kTimeout * (1 << call.attempts++);
    Call& pending = pending_[id] = std::move(call);
    pending.timer = timers_.schedule_after(timeout, [this, id] { on_timeout(id); });
    send_line(socket_, id, pending.question);
  }

  void on_timeout(int id) {
    std::optional<Call> call = take(id);
    if (!call) return;  // the reply has won
    std::printf("%s: attempt %d timed out\n", call->question.c_str(), call->attempts);
    if (call->attempts < kAttempts) return send(std::move(*call));
    std::printf("%s: failed\n", call->question.c_str());
    ++failed;
    left.count_down();
  }

  tcp::socket& socket_;
  std::mutex mutex_;  // protects what follows, and the order of requests
  std::map<int, Call> pending_;
  int last_id_ = 0;
  carillon::TimerService timers_;  // last: its thread ends first
};

}  // namespace

int main() {
  net::io_context io;
  tcp::acceptor acceptor(io, {net::ip::address_v4::loopback(), 0});  // 0: the system chooses a port
  std::thread server([&] { serve(acceptor.accept()); });
  tcp::socket socket(io);
  socket.connect(acceptor.local_endpoint());
  Caller caller(socket, 3);
  std::thread replies([&] {
    read_lines(socket, [&](int id, const std::string& answer) { caller.on_reply(id, answer); });
  });
  for (const char* question : {"ping", "slow", "never"}) caller.ask(question);
  caller.left.wait();

  socket.shutdown(tcp::socket::shutdown_send);  // ends the server, and the server ends the replies
  server.join();
  replies.join();
  std::printf("%d answered, %d failed, %d late replies dropped\n", caller.answered.load(),
              caller.failed.load(), caller.late.load());
  return 0;
}
