// The Pusher: takes jobs of the tubes that have endpoints, and posts each to its endpoint. It is a
// client of the engine within the process, as Leases are, and runs in the event loop.
//
//   Pusher pusher(io, service, [&] { return durable; }, {.allowed = networks});
//   pusher.work();                            // once a turn
//   if (!pusher.deliver(delivery)) ...        // a job for it, or for somebody else
//   pusher.try_out(client, "billing", endpoint);            // a request without a job
//
// An attempt takes one *slot* of its endpoint: a client of the engine that waits for a job, holds
// it until its put is durable, reads the body and posts it. What happens to the job, by the answer:
//   2xx                    it is deleted
//   410                    it is ready again; the endpoint is disabled, durably
//   429, 502, 503, 504     it is ready again, no attempt has failed; the endpoint rests for a while
//   anything else, none    the attempt has failed: the job's own policy, the tube's, or kUsualRetry
//
// Bounds: Endpoint::concurrency jobs of one endpoint at once, and kMostInFlight of all endpoints.
// Beyond that, an endpoint without a job may still get one, so that slow endpoints do not keep
// others waiting. If PushOptions::sockets is small, there are fewer (push_options.h). Connections
// stay open between attempts (kept_connections.h). Bodies are charged to the memory of connections,
// and have at most kMostBody bytes.
//
// Thread safety: none; it belongs to the thread of the event loop.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/log_throttle.h"
#include "carillon/queue/endpoint.h"
#include "carillon/queue/engine.h"
#include "server/net/bodies.h"
#include "server/net/memory_pool.h"
#include "server/push/address_guard.h"
#include "server/push/kept_connections.h"
#include "server/push/post_connection.h"
#include "server/push/push_options.h"
#include "server/text/exposition.h"

namespace carillon::server {
class Service;
}

namespace carillon::server::push {

inline constexpr std::uint32_t kMostConcurrency = 64;
inline constexpr std::size_t kMostBody = 1 << 20;
inline constexpr queue::Millis kLeastTimeout = 100;
inline constexpr queue::Millis kMostTimeout = 600'000;
// The policy of jobs if neither they nor their tube have one: 5 s, 10 s, ... 1 h, about 11 hours in
// all.
inline constexpr queue::RetryPolicy kUsualRetry{
    .max_attempts = 20, .backoff = 5'000, .backoff_max = 3'600'000, .jitter = 20};

// What can be said about an endpoint since the start.
struct PushStatus {
  std::size_t in_flight = 0;
  queue::Millis rests_for = 0;  // ms; 0: it does not rest
  std::string last_error = {};
  queue::UtcMs last_error_at = 0;
  std::uint64_t delivered = 0;
  std::uint64_t retried = 0;    // failed attempts after which the job comes again
  std::uint64_t dead = 0;       // the last attempts of jobs
  std::uint64_t throttled = 0;  // the endpoint asked for a rest
};

// Returns why nothing is posted to the endpoint: it was disabled, or its URL is not valid (a
// program that embeds the queue may have set any). Returns an empty string if it is not disabled.
std::string why_disabled(const queue::Endpoint& endpoint);
enum class EndpointState : std::uint8_t { kEnabled, kResting, kPaused, kDisabled };
inline constexpr std::array<std::string_view, 4> kEndpointStates = {"enabled", "resting", "paused",
                                                                    "disabled"};
EndpointState state_of(const queue::Endpoint& endpoint, const PushStatus& status);

class Pusher {
 public:
  using OnTried = std::function<void(queue::ClientId, const PostResult&)>;

  // Throws StartError if the certificates cannot be read. `service` must outlive this.
  Pusher(boost::asio::io_context& io, Service& service, std::function<queue::Sequence()> durable,
         const PushOptions& options);
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  // Works for about a millisecond.
  void work();
  // Returns true if work() must be called again at once.
  bool has_more() const { return again_; }
  // Returns true if work() must be called again within some ms, whether something happens or not.
  bool has_work() const { return again_ || !finished_.empty() || !held_.empty(); }
  // Returns false if the client is not one of the slots.
  bool deliver(const queue::Delivery& delivery);
  void body_read(queue::ClientId client, const Body& body);

  // Decides which addresses endpoints may have.
  const AddressGuard& guard() const { return guard_; }

  // Posts a request without a job, also to an endpoint that rests, is paused or is disabled. The
  // result is passed to the function that on_tried() has set, unless the server stops. Returns
  // false if kMostTrials are under way.
  bool try_out(queue::ClientId client, std::string_view name, const queue::Endpoint& endpoint);
  void on_tried(OnTried tell) { tried_ = std::move(tell); }

  // Ends the rest of the endpoint.
  void end_rest(std::string_view name);

  // Takes no more jobs. Attempts under way get kGrace; then their jobs are ready again.
  void stop();
  // Returns true if no job is held.
  bool is_idle() const;

  PushStatus status(std::string_view name) const;
  void tell(metrics::Exposition& text) const;

 private:
  struct Target;
  struct Slot;
  using Trials = std::list<std::shared_ptr<PostConnection>>;

  void take_over_endpoints();
  void fill(Target& target, std::uint64_t until);
  bool may_take(const Target& target) const;
  void begin(Slot& slot);
  void take(Slot& slot, const queue::JobView& job);
  void go_on(Slot& slot);
  void post(Slot& slot);
  std::shared_ptr<PostConnection> connection_to(const TargetUrl& url);
  void look_at_held(std::uint64_t until);
  void settle_finished(std::uint64_t until);
  void settle(Slot& slot);
  void fail(Slot& slot, const std::string& error, bool for_good);
  void give_back(Slot& slot);
  void end(Slot& slot);
  void stop_waiting(Target& target);
  void hold_off(Target& target, const std::string& why);
  void note_error(Target& target, const std::string& error);
  void disable(Target& target, const std::string& error);
  void throttle(const Slot& slot, const std::string& error);
  void set_timer();

  boost::asio::io_context& io_;
  Service& service_;
  std::function<queue::Sequence()> durable_;
  AddressGuard guard_;
  boost::asio::ssl::context tls_;
  const std::size_t most_kept_;
  const std::size_t most_at_work_;
  KeptConnections kept_;
  Trials trials_;
  OnTried tried_;
  boost::asio::steady_timer timer_;
  std::map<std::string, std::unique_ptr<Target>, std::less<>> targets_;
  std::unordered_map<queue::ClientId, Slot*> by_client_;
  std::vector<Slot*> held_;     // wait until a put is durable, or for the next piece of a body
  std::deque<Slot*> finished_;  // their attempts have ended
  std::uint64_t changes_seen_ = UINT64_MAX;
  std::size_t in_flight_ = 0;
  bool fill_ = true;    // a slot may have become free
  bool again_ = false;  // there was more to do
  bool stopping_ = false;
  std::uint64_t retry_at_ = 0;  // mono; after a failure of the store
  base::LogThrottle errors_;
  base::Histogram durations_;
};

}  // namespace carillon::server::push
