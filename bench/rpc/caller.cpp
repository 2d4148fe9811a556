#include "caller.h"

#include <algorithm>
#include <utility>

namespace rpc {

using std::chrono::nanoseconds;

Caller::Caller(PendingCalls& calls, Deadlines& deadlines, Send send, CallerOptions options)
    : calls_(calls),
      deadlines_(deadlines),
      send_(std::move(send)),
      options_(std::move(options)),
      random_(options_.seed) {
  deadlines_.start([this](std::uint64_t id) { on_due(id); });
}

Caller::~Caller() {
  on_disconnect("the caller is gone");
  deadlines_.stop();
  fail_all();  // the calls that on_due() has put back meanwhile
}

void Caller::call(Method method, std::string payload, nanoseconds timeout, OnEnd on_end) {
  ++started_;
  auto call = std::make_unique<Call>();
  call->method = method;
  call->payload = std::move(payload);
  call->timeout = timeout;
  call->on_end = std::move(on_end);
  send(std::move(call));
}

void Caller::on_reply(std::uint64_t id, std::string_view result) {
  const std::unique_ptr<Call> call = calls_.take_sent(id);
  if (call == nullptr) {
    ++late_;
    return;
  }
  deadlines_.cancel(*call);  // if that is too late, on_due() finds the call taken
  end(*call, true, result);
}

void Caller::on_due(std::uint64_t id) {
  std::unique_ptr<Call> call = calls_.take(id);
  if (call == nullptr) return;
  if (call->phase == Call::Phase::kBackingOff) return send(std::move(call));

  ++timed_out_;
  if (options_.on_timeout) options_.on_timeout(deadlines_.now() - call->due);
  if (call->attempt < options_.attempts) return pause(std::move(call));
  end(*call, false, "no reply in time");
}

void Caller::send(std::unique_ptr<Call> call) {
  ++sent_;
  ++call->attempt;
  call->id = next_id_++;
  const std::string frame = make_request(call->id, call->method, call->payload);
  const nanoseconds timeout = call->timeout;
  enter(std::move(call), Call::Phase::kSent, timeout);
  send_(frame);  // after enter(), because the reply must find the call
}

void Caller::pause(std::unique_ptr<Call> call) {
  nanoseconds longest = std::min(options_.first_pause, options_.longest_pause);
  for (int i = 1; i < call->attempt && longest < options_.longest_pause; ++i) {
    longest = longest < options_.longest_pause / 2 ? 2 * longest : options_.longest_pause;
  }
  std::uniform_int_distribution<nanoseconds::rep> length(longest.count() / 2, longest.count());
  call->id = next_id_++;
  enter(std::move(call), Call::Phase::kBackingOff, nanoseconds(length(random_)));
}

void Caller::enter(std::unique_ptr<Call> call, Call::Phase phase, nanoseconds until_due) {
  call->phase = phase;
  call->due = deadlines_.now() + until_due;
  calls_.add(std::move(call), [this](Call& added) { deadlines_.set(added); });
  if (disconnected_) fail_all();  // on_disconnect() may have missed this call
}

void Caller::on_disconnect(const std::string& why) {
  if (!disconnected_) why_ = why;
  disconnected_ = true;
  fail_all();
}

void Caller::fail_all() {
  for (const std::unique_ptr<Call>& call : calls_.take_all()) {
    deadlines_.cancel(*call);
    end(*call, false, why_);
  }
}

void Caller::end(Call& call, bool answered, std::string_view text) {
  ++(answered ? answered_ : failed_);
  call.on_end({.answered = answered, .text = std::string(text), .attempts = call.attempt});
}

CallerCounts Caller::counts() const {
  return {.started = started_,
          .answered = answered_,
          .failed = failed_,
          .sent = sent_,
          .timed_out = timed_out_,
          .late = late_};
}

}  // namespace rpc
