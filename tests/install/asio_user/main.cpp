// A user's program: one wait completes, the other is cancelled.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>

#include "carillon/asio/wheel_timer.h"

int main() {
  using namespace std::chrono_literals;
  boost::asio::io_context io;
  int completed = 0;
  int aborted = 0;
  carillon::wheel_timer soon(io, 1ms);
  carillon::wheel_timer far(io, 1h);
  far.async_wait([&](boost::system::error_code error) { aborted += error ? 1 : 0; });
  soon.async_wait([&](boost::system::error_code error) {
    completed += error ? 0 : 1;
    far.cancel();
  });
  io.run();
  if (completed != 1 || aborted != 1) {
    std::puts("expected one wait to complete, and the other to be aborted");
    return 1;
  }
  return 0;
}
