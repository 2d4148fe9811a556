// What the Pusher knows about one endpoint, and about each of its slots (pusher.h). Only pusher.cpp
// and outcomes.cpp use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/push/pusher.h"

namespace carillon::server::push {

inline constexpr queue::Millis kShortRest = 1'000;
inline constexpr queue::Millis kLongestRest = 300'000;
inline constexpr std::uint64_t kMs = 1'000'000;

struct Pusher::Slot {
  Slot(Target& of, MemoryPool& pool) : target(of), memory(pool) {}

  enum class State : std::uint8_t { kFree, kWaiting, kHeld, kBody, kPosting, kEnded };
  Target& target;
  State state = State::kFree;
  // Target::version when the attempt began. If the endpoint has changed since, the job is given
  // back, and the answer says nothing about the endpoint as it is now.
  std::uint64_t version = 0;
  queue::ClientId client = 0;
  queue::JobView job = {};
  std::string body = {};
  // The delay of the job's next attempt, if neither the job nor its tube has a policy.
  std::optional<queue::Millis> usual_delay = {};
  MemoryPool::Share memory;
  std::shared_ptr<PostConnection> connection = {};  // while it posts
  std::uint64_t posted_at = 0;                      // mono
  PostResult result = {};

  bool is_at_work() const { return state > State::kWaiting; }
};

struct Pusher::Target {
  std::string name;
  queue::Endpoint endpoint;
  TargetUrl url = {};
  bool removed = false;
  std::uint64_t version = 0;  // goes up with each change of the endpoint
  std::vector<std::unique_ptr<Slot>> slots = {};
  std::size_t in_flight = 0;
  // By the monotonic clock: when the endpoint last asked for a rest, until when it rests, and until
  // when no job is taken because of an error of our own.
  std::uint64_t rested_at = 0;
  std::uint64_t rests_until = 0;
  std::uint64_t held_off_until = 0;
  queue::Millis last_rest = 0;
  PushStatus told = {};

  std::uint64_t takes_at() const { return std::max(rests_until, held_off_until); }
  bool is_on() const { return !removed && endpoint.disabled.empty() && !endpoint.paused; }
};

}  // namespace carillon::server::push
