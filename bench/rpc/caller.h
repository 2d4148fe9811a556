// Caller: the client's half of remote calls, without the network. Each call ends exactly once:
// answered, or failed.
//
//   rpc::Caller caller(pending, deadlines, [channel](std::string_view frame) { channel->send(frame); });
//   caller.call(Method::kEcho, "hello", 2s, [](const Outcome& outcome) { ... });
//   ...
//   caller.on_reply(id, result);      // when a reply arrives
//
// An attempt whose reply does not come within the call's time-out is over; after a pause the call
// is sent again with another id, up to `attempts` times. The pauses double, and each is drawn from
// the upper half of its range, so that calls which failed together do not come back together. A
// reply to an attempt that is over finds no call of that id, and is dropped.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "deadlines.h"
#include "frame.h"
#include "pending_calls.h"

namespace rpc {

struct CallerOptions {
  int attempts = 3;
  std::chrono::nanoseconds first_pause =
      std::chrono::milliseconds(100);  // 50 to 100 ms; then 100 to 200, and so on
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(5);
  std::uint64_t seed = 1;  // of the pauses

  // Gets by how much each time-out was late, on the thread of the deadlines. Empty: nobody wants to
  // know.
  std::function<void(std::chrono::nanoseconds)> on_timeout = nullptr;
};

// When nothing is pending: started == answered + failed, and sent == answered + timed_out + those
// that were waiting when the connection ended.
struct CallerCounts {
  std::uint64_t started = 0, answered = 0, failed = 0;  // calls
  std::uint64_t sent = 0, timed_out = 0;                // attempts
  std::uint64_t late = 0;                               // replies to attempts that were over
};

// Thread safety: any thread may call anything at any time; the destructor comes last, and stops the
// deadlines.
class Caller {
 public:
  using Send = std::function<void(std::string_view frame)>;  // any thread
  using OnEnd = std::function<void(const Outcome&)>;

  Caller(PendingCalls& calls, Deadlines& deadlines, Send send, CallerOptions options = {});
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller();  // fails what is pending

  // on_end is called once, by the thread that brought the reply, that of the deadlines, or, once
  // the connection has ended, perhaps within call().
  void call(Method method, std::string payload, std::chrono::nanoseconds timeout, OnEnd on_end);

  void on_reply(std::uint64_t id, std::string_view result);

  // There will be no replies any more: fails all calls that are pending, and those to come.
  void on_disconnect(const std::string& why);

  CallerCounts counts() const;

 private:
  void on_due(std::uint64_t id);
  void send(std::unique_ptr<Call> call);
  void pause(std::unique_ptr<Call> call);
  void enter(std::unique_ptr<Call> call, Call::Phase phase, std::chrono::nanoseconds until_due);
  void fail_all();
  void end(Call& call, bool answered, std::string_view text);

  PendingCalls& calls_;
  Deadlines& deadlines_;
  const Send send_;
  const CallerOptions options_;
  std::mt19937_64 random_;  // of the deadlines' thread
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<bool> disconnected_{false};
  std::string why_;  // disconnected; written before that
  std::atomic<std::uint64_t> started_{0}, answered_{0}, failed_{0}, sent_{0}, timed_out_{0},
      late_{0};
};

}  // namespace rpc
