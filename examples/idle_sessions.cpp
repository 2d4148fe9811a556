// The wheel alone, with the time given by the program: sessions end 30 s after the last packet.
//
//   g++ -std=c++20 -Iinclude examples/idle_sessions.cpp && ./a.out

#include <carillon/wheel/hierarchical_wheel.h>

#include <cstdio>
#include <string>

namespace {

constexpr carillon::Tick kIdleLimit = 30'000;  // ticks are ms here

struct Session : carillon::TimerNode {
  explicit Session(std::string name) : user(std::move(name)) {}
  std::string user;
};

}  // namespace

int main() {
  carillon::HierarchicalWheel<> wheel;
  Session ada("ada");
  Session grace("grace");
  wheel.schedule_after(ada, kIdleLimit);
  wheel.schedule_after(grace, kIdleLimit);

  const auto end_session = [&wheel](carillon::TimerNode& node) {
    std::printf("%6llu ms: %s has been idle for 30 s\n",
                static_cast<unsigned long long>(wheel.now()),
                static_cast<Session&>(node).user.c_str());
  };

  wheel.advance(20'000, end_session);
  wheel.reschedule_after(grace, kIdleLimit);  // a packet from grace: one store
  wheel.advance(60'000, end_session);         // one call, however far
  return wheel.empty() ? 0 : 1;
}
