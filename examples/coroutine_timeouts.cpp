// Coroutines with time-outs: asks a server a question, gives each attempt 100 ms, waits a little
// longer after each failure, and gives up when it is told to stop.
//
// The server is a coroutine that takes its time. A call over a socket would look the same to the
// caller; rpc.cpp has one.

#include <carillon/timer/coroutine.h>
#include <carillon/timer/timer_service.h>
#include <carillon/timer/with_timeout.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

// g++ 12 warns about code that it generates for coroutines.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace {

using namespace std::chrono_literals;

// Answers the third question after 1 ms, and all others after an hour.
class Server {
 public:
  explicit Server(carillon::TimerService& timers) : timers_(timers) {}

  carillon::Coroutine<std::string> ask(const std::string& question, std::stop_token stop) {
    const auto time = ++asked_ == 3 ? std::chrono::nanoseconds(1ms) : 1h;
    // False: told to stop, so the caller no longer wants the answer.
    if (!co_await timers_.sleep_for(time, std::move(stop))) co_return "";
    co_return "the answer to " + question;
  }

 private:
  carillon::TimerService& timers_;
  int asked_ = 0;
};

// Returns nullopt if it was told to stop.
carillon::Coroutine<std::optional<std::string>> ask_until_answered(carillon::TimerService& timers,
                                                                   Server& server,
                                                                   std::string question,
                                                                   std::stop_token stop) {
  std::chrono::milliseconds pause = 5ms;
  for (int attempt = 1;; ++attempt) {
    const auto answer = co_await carillon::with_timeout(
        timers, [&](std::stop_token told) { return server.ask(question, std::move(told)); }, 100ms);
    if (answer) co_return *answer;
    std::printf("attempt %d timed out\n", attempt);
    if (!co_await timers.sleep_for(pause, stop)) co_return std::nullopt;
    pause *= 2;
  }
}

carillon::Coroutine<> run(carillon::TimerService& timers, Server& server, std::stop_source& stop) {
  const auto answer = co_await ask_until_answered(timers, server, "life", {});
  std::printf("%s\n", answer->c_str());
  timers.schedule_after(150ms, [&] { stop.request_stop(); });
  const auto none = co_await ask_until_answered(timers, server, "everything", stop.get_token());
  std::puts(none ? none->c_str() : "told to stop");
}

}  // namespace

int main() {
  std::stop_source stop;
  // The coroutines run in a pool of two threads.
  carillon::TimerService timers({.executor = carillon::TimerExecutor::pool(2)});
  Server server(timers);
  run(timers, server, stop).wait();
  return timers.drain().empty() ? 0 : 1;
}
