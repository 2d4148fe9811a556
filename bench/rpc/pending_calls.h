// PendingCalls: the calls that have not ended yet, by request id. A reply, the deadline or the end
// of the connection takes a call out. The thread that takes it out has won it, and alone decides
// how the call goes on.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/timer/timer_clock.h"
#include "carillon/timer/timer_handle.h"
#include "frame.h"

namespace rpc {

// How a call ended: with a result, or with the reason why it has no result.
struct Outcome {
  bool answered = false;
  std::string text;
  int attempts = 0;
};

struct Call {
  enum class Phase { kSent, kBackingOff };

  Method method = Method::kEcho;
  std::string payload;
  std::chrono::nanoseconds timeout{0};
  std::function<void(const Outcome&)> on_end;

  std::uint64_t id = 0;  // names this attempt, or this pause between two; never used twice
  Phase phase = Phase::kSent;
  int attempt = 0;              // the first is 1
  carillon::SteadyTime due;     // the time-out, or the end of the pause
  carillon::TimerHandle timer;  // for TimerDeadlines
};

// Thread-safe. Ids are divided among parts, each with a lock. There are enough parts that two
// threads seldom wait for each other, even if one of them visits all calls, a part at a time.
class PendingCalls {
 public:
  // Adds the call, and calls on_added(Call&) before another thread can take the call.
  template <class F>
  void add(std::unique_ptr<Call> call, F&& on_added) {
    Part& part = part_of(call->id);
    const std::scoped_lock lock(part.mutex);
    Call& added = *call;
    part.calls.emplace(added.id, std::move(call));
    on_added(added);
  }

  // Takes the call out; returns null if it is not there.
  std::unique_ptr<Call> take(std::uint64_t id) {
    Part& part = part_of(id);
    const std::scoped_lock lock(part.mutex);
    return take_from(part, part.calls.find(id));
  }

  // As take(), but also returns null if the call is in a pause between two attempts.
  std::unique_ptr<Call> take_sent(std::uint64_t id) {
    Part& part = part_of(id);
    const std::scoped_lock lock(part.mutex);
    const auto found = part.calls.find(id);
    if (found != part.calls.end() && found->second->phase != Call::Phase::kSent) return nullptr;
    return take_from(part, found);
  }

  std::vector<std::unique_ptr<Call>> take_all() {
    std::vector<std::unique_ptr<Call>> all;
    for (Part& part : parts_) {
      const std::scoped_lock lock(part.mutex);
      for (auto& [id, call] : part.calls) all.push_back(std::move(call));
      part.calls.clear();
    }
    return all;
  }

  // Calls visit(const Call&) for each call. `visit` must not call functions of this object.
  template <class F>
  void for_each(F&& visit) {
    for (Part& part : parts_) {
      const std::scoped_lock lock(part.mutex);
      for (const auto& [id, call] : part.calls) visit(std::as_const(*call));
    }
  }

 private:
  using Map = std::unordered_map<std::uint64_t, std::unique_ptr<Call>>;

  struct alignas(64) Part {
    std::mutex mutex;
    Map calls;
  };

  static std::unique_ptr<Call> take_from(Part& part, Map::iterator found) {
    if (found == part.calls.end()) return nullptr;
    std::unique_ptr<Call> call = std::move(found->second);
    part.calls.erase(found);
    return call;
  }

  Part& part_of(std::uint64_t id) { return parts_[id % parts_.size()]; }

  std::array<Part, 1024> parts_;
};

}  // namespace rpc
