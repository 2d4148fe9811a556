// A user's program of a page: a server's housekeeping. Requests have time-outs on a wheel of the
// event loop, silent connections are dropped, and a timer service reports and sleeps.
#include <carillon/idle/idle_tracker.h>
#include <carillon/timer/coroutine.h>
#include <carillon/timer/scoped_timer.h>
#include <carillon/timer/timer_service.h>
#include <carillon/wheel/callback_timer.h>
#include <carillon/wheel/hierarchical_wheel.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <unordered_map>

using namespace std::chrono_literals;

class Server {
 public:
  explicit Server(carillon::TimerService& timers)
      : report_(timers.schedule_every(1ms, [this] { ++reports_; })) {}

  void connect(int socket) { sockets_.emplace(connections_.add(socket), socket); }
  void request(carillon::CallbackTimer& timeout) { requests_.schedule_after(timeout, 500); }
  void answer(carillon::CallbackTimer& timeout) { requests_.cancel(timeout); }
  void turn(carillon::Tick ms) {
    requests_.advance(ms, carillon::call_timer);
    connections_.advance(ms / 1000, [this](carillon::IdleId id, int) { sockets_.erase(id); });
  }
  void packet(int socket) {
    for (const auto& [id, each] : sockets_)
      if (each == socket) connections_.touch(id);
  }
  bool has(int socket) const {
    for (const auto& [id, each] : sockets_)
      if (each == socket) return true;
    return false;
  }
  int reports() const { return reports_; }

 private:
  carillon::HierarchicalWheel<> requests_;  // in ms
  carillon::IdleTracker<int> connections_{carillon::Ticks{30}, 0, carillon::MostConnections{1000}};
  std::unordered_map<carillon::IdleId, int> sockets_;
  std::atomic<int> reports_{0};
  carillon::ScopedTimer report_;  // the last member: its task uses the others
};

carillon::Coroutine<> wait_for_a_report(carillon::TimerService& timers, Server& server) {
  while (server.reports() == 0) co_await timers.sleep_for(1ms);
}

int main() {
  carillon::TimerService timers({.max_pending = 10'000});
  Server server(timers);
  server.connect(7);
  server.connect(8);
  int late = 0;
  carillon::CallbackTimer answered([&] { late += 100; });
  carillon::CallbackTimer forgotten([&] { ++late; });
  server.request(answered);
  server.request(forgotten);
  server.answer(answered);
  for (carillon::Tick second = 1; second <= 60; ++second) {
    server.packet(7);
    server.turn(second * 1000);
  }
  wait_for_a_report(timers, server).wait();
  std::printf("late %d, 7 %d, 8 %d\n", late, server.has(7), server.has(8));
  return late == 1 && server.has(7) && !server.has(8) ? 0 : 1;
}
