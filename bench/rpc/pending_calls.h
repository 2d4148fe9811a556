// PendingCalls: the calls that have not ended yet, by request id. Who takes a call out of it, and
// nobody else, decides what becomes of it: a reply, its deadline, or the end of the connection.
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

// How a call ended: with a result, or with the reason why there is none.
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

  std::uint64_t id = 0;  // of this attempt, or of this pause between two: none is ever used twice
  Phase phase = Phase::kSent;
  int attempt = 0;              // 1 is the first
  carillon::SteadyTime due;     // the time-out, or the end of the pause
  carillon::TimerHandle timer;  // for TimerDeadlines
};

// Thread-safe. It is divided by id into parts with a lock each, so many that two threads are seldom
// in each other's way: also when one visits all of it, a part at a time.
class PendingCalls {
 public:
  // Puts the call in, and calls on_added(Call&) before anybody can take it out.
  template <class F>
  void add(std::unique_ptr<Call> call, F&& on_added) {
    Part& part = part_of(call->id);
    const std::scoped_lock lock(part.mutex);
    Call& added = *call;
    part.calls.emplace(added.id, std::move(call));
    on_added(added);
  }

  // Null if it is not there (any more).
  std::unique_ptr<Call> take(std::uint64_t id) {
    Part& part = part_of(id);
    const std::scoped_lock lock(part.mutex);
    return take_from(part, part.calls.find(id));
  }

  // As take(), and null if it is between two attempts.
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

  // Calls visit(const Call&) for each; what it does must not come back here.
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
