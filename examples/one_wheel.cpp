// Timers of three kinds on one wheel: time-outs and pings of sessions, and a report. Each timer
// knows what to call, so nothing is tagged or cast.
//
//   g++ -std=c++20 -Iinclude examples/one_wheel.cpp && ./a.out

#include <carillon/wheel/callback_timer.h>
#include <carillon/wheel/chrono_wheel.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace {

using namespace std::chrono_literals;
using Wheel = carillon::ChronoWheel<std::chrono::milliseconds>;

class Session {
 public:
  Session(Wheel& wheel, std::string user) : wheel_(wheel), user_(std::move(user)) {
    wheel_.schedule_after(idle_, 30s);
    wheel_.schedule_after(ping_, 20s);
  }

  void packet() {
    wheel_.reschedule_after(idle_, 30s);
    wheel_.reschedule_after(ping_, 20s);
  }

 private:
  void on_idle() { std::printf("%s has been idle for 30 s\n", user_.c_str()); }
  void send_ping() { std::printf("are you there, %s?\n", user_.c_str()); }

  Wheel& wheel_;
  std::string user_;
  // A session that is destroyed takes its timers off the wheel.
  carillon::MemberTimer<&Session::on_idle> idle_{*this};
  carillon::MemberTimer<&Session::send_ping> ping_{*this};
};

}  // namespace

int main() {
  std::chrono::steady_clock::time_point now;  // a program would ask the clock
  Wheel wheel(now);
  Session ada(wheel, "ada");
  Session grace(wheel, "grace");
  carillon::CallbackTimer report([&] { std::printf("%zu timers\n", wheel.size()); });
  wheel.schedule_after(report, 35s);

  wheel.advance(now += 25s, carillon::call_timer);
  grace.packet();
  wheel.advance(now += 20s, carillon::call_timer);
  return wheel.size() == 1 ? 0 : 1;
}
