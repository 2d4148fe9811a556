// Caller: the client's half of remote calls, without the network. Each call ends exactly once:
// answered or failed.
//
//   const auto send = [channel](std::string_view frame) { channel->send(frame); };
//   rpc::Caller caller(pending, deadlines, send);
//   caller.call(Method::kEcho, "hello", 2s, [](const Outcome& outcome) { ... });
//   ...
//   caller.on_reply(id, result);      // when a reply arrives
//
// If no reply to an attempt comes within the call's time-out, the attempt is over. After a pause
// the call is sent again with another id, up to `attempts` times in all. The longest pause doubles
// from one attempt to the next, and each pause is drawn between half of that and the whole, so that
// calls which failed together are not sent again together. A reply to an attempt that is over finds
// no call with its id, and is dropped.
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
  // The first pause is 50 to 100 ms long, the second 100 to 200 ms, and so on.
  std::chrono::nanoseconds first_pause = std::chrono::milliseconds(100);
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(5);
  std::uint64_t seed = 1;  // for the pauses

  // If not empty, it is called on the thread of the deadlines for each time-out, with the time by
  // which that was late.
  std::function<void(std::chrono::nanoseconds)> on_timeout = nullptr;
};

// When nothing is pending: started == answered + failed, and sent == answered + timed_out + the
// attempts that were waiting when the connection ended.
struct CallerCounts {
  std::uint64_t started = 0, answered = 0, failed = 0;  // calls
  std::uint64_t sent = 0, timed_out = 0;                // attempts
  std::uint64_t late = 0;                               // replies to attempts that were over
};

// Thread safety: any thread may call any function at any time, but the destructor must be the last
// call. It stops the deadlines.
class Caller {
 public:
  using Send = std::function<void(std::string_view frame)>;  // called by any thread
  using OnEnd = std::function<void(const Outcome&)>;

  Caller(PendingCalls& calls, Deadlines& deadlines, Send send, CallerOptions options = {});
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller();  // all pending calls fail

  // on_end is called once: by the thread that calls on_reply(), by the thread of the deadlines, or,
  // if the connection has ended, perhaps within call().
  void call(Method method, std::string payload, std::chrono::nanoseconds timeout, OnEnd on_end);

  void on_reply(std::uint64_t id, std::string_view result);

  // Call it when no more replies can come: all pending calls fail, and so do all later calls.
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
  std::mt19937_64 random_;  // used by the thread of the deadlines only
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<bool> disconnected_{false};
  std::string why_;  // written before disconnected_ is set
  std::atomic<std::uint64_t> started_{0}, answered_{0}, failed_{0}, sent_{0}, timed_out_{0},
      late_{0};
};

}  // namespace rpc
