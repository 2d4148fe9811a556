// A request that is being answered. Each function of the API works with one.
//
//   void answer_one(RequestContext& x, queue::JobId id) {
//     const auto stats = x.engine().job_stats(x.now(), id);
//     if (!stats) throw Problem(kNotFound, "there is no such job");
//     x.read_body(
//         id, stats->record.body_id(),
//         [stats = *stats](RequestContext& x, std::string_view body) {
//           x.answer({.body = json_of(stats, body), .durable_at = stats.durable_at});
//         },
//         answer_one);
//   }
//
// A function of the API answers, throws Problem, or asks for something that it needs first: a body,
// a delivery, the result of a trial of an endpoint, or another turn, so that others are served in
// between. It passes a function of the same kind, which is called when that has come. It may also
// throw queue::StoreError and queue::OverLimit.
//
// Thread safety: none; a RequestContext belongs to its session.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/require.h"
#include "server/api/caller.h"
#include "server/api/request.h"
#include "server/service.h"

namespace carillon::server::push {
struct PostResult;
}

namespace carillon::server {

// Returns the number of a job. Throws Problem if the text is not a number.
queue::JobId job_id_of(const std::string& text);

class Problem;

// The answer if the body of a job is damaged, or cannot be read now.
Problem unreadable(queue::JobId job, const Body& body);

struct Operation;  // operation.h

class RequestContext {
 public:
  using OnBody = std::function<void(RequestContext&, std::string_view body)>;
  using OnNoBody = std::function<void(RequestContext&, const Body&)>;
  using Again = void (*)(RequestContext&, queue::JobId);
  using OnDelivery = std::function<void(RequestContext&, const queue::Delivery&)>;
  using OnCheckpoint = std::function<void(RequestContext&, const CheckpointResult&)>;
  using OnTried = std::function<void(RequestContext&, const push::PostResult&)>;
  using Step = std::function<void(RequestContext&)>;
  // What it asks for.
  enum class Awaits : std::uint8_t {
    kNothing,
    kBody,
    kDelivery,
    kTrial,
    kCheckpoint,
    kTurn,
    kEvents
  };

  // The caller must outlive the RequestContext.
  RequestContext(Service& service, queue::ClientId client, const Caller& caller, Request asked)
      : request(std::move(asked)),
        service_(service),
        client_(client),
        caller_(caller),
        now_(service.now()) {}

  const Request request;
  // The row of the operation. Null for an older route, which reads the request by itself.
  const Operation* operation = nullptr;
  // The JSON that is the request's body, if an Unread list of it (field.h) is read later.
  boost::json::object json;
  // The parts of the path that the route leaves open, in their order, decoded.
  std::vector<std::string> names;
  // The entry of the audit for this request: its action (empty: no entry), its target and its
  // outcome. If the function does not set them, the target is names[0] and the outcome is the
  // status.
  std::string audited_as;
  std::string target;
  std::string outcome;
  // Nothing was changed, so the answer is not kept under the request's Idempotency-Key.
  bool changed_nothing = false;
  // The request puts jobs into the tube names[0], so its answer shows the rate of that tube.
  bool is_put = false;

  Service& service() { return service_; }
  const Service& service() const { return service_; }
  queue::Engine& engine() { return service_.engine(); }
  queue::ClientId client() const { return client_; }
  // The time at which the request is carried out.
  queue::Now now() const { return now_; }

  // Returns names[0], which names a tube. Throws Problem if it is no name.
  const std::string& tube() const;
  // The same; also makes it the tube that the client uses.
  const std::string& use_tube();
  // Whether the caller's token is good for the tube. A function checks the tubes that the path does
  // not name. The others throw Problem.
  bool may_use(std::string_view tube) const { return caller_.may_use(tube); }
  void require_tube(std::string_view tube) const;
  // The same for the tube of `what`, which the client has not named.
  void require_tube_of(std::string_view what, std::string_view tube) const;
  const Caller& caller() const { return caller_; }
  // Throws Problem if the server takes no jobs now.
  void require_room();

  void answer(Reply reply) { reply_ = std::move(reply); }
  // Adds the headers that every answer to a put has: RateLimit-Policy and RateLimit.
  void add_headers(std::vector<std::pair<std::string_view, std::string>>& headers);
  // Calls `then` with the body, at once or later. If the body cannot be read, the request is
  // answered with the reason. If the job was deleted meanwhile, or has another body, calls `again`
  // to begin anew. REQUIRES: the function returns after this.
  void read_body(queue::JobId job, queue::JobId body_id, OnBody then, Again again);
  // The same for a job that the request has reserved, but calls `failed` if there is no body.
  void read_body(const queue::JobView& job, OnBody then, OnNoBody failed);
  // Calls `then` when the wait of `worker` has ended (Engine::take_deliveries).
  void await_delivery(queue::ClientId worker, OnDelivery then);
  // Calls `then` with the result of the trial that has begun for client().
  void await_trial(OnTried then);
  // `then` is called with the checkpoint that was begun for client().
  void await_checkpoint(OnCheckpoint then);
  // `then` is called in the next turn, when the store has room for another append.
  void later(Step then);

  // Answers with a stream of the feed's events after the one with this number.
  void tell_events(std::uint64_t after) {
    awaits_ = Awaits::kEvents;
    awaited_ = after;
  }

  // Counts `bytes` of memory that the function keeps until it has answered. Throws Problem if
  // memory is short.
  void hold(std::size_t bytes);
  std::size_t held() const { return held_; }

  // The session calls these: they return what the function has asked for. body_came() and the
  // functions after it continue with it, and may ask for something else.
  Awaits awaits() const { return awaits_; }
  std::optional<Reply> take_reply() { return std::exchange(reply_, std::nullopt); }
  // REQUIRES: awaits() is the one that the name says.
  queue::JobId awaited_body() const {
    CARILLON_REQUIRE(awaits_ == Awaits::kBody, awaits_);
    return awaited_;
  }
  queue::ClientId awaited_worker() const {
    CARILLON_REQUIRE(awaits_ == Awaits::kDelivery, awaits_);
    return awaited_;
  }
  std::uint64_t events_after() const {
    CARILLON_REQUIRE(awaits_ == Awaits::kEvents, awaits_);
    return awaited_;
  }
  // Throws Problem if the body is damaged.
  void body_came(const Body& body);
  void delivered(const queue::Delivery& delivery);
  void tried(const push::PostResult& result);
  void checkpoint_made(const CheckpointResult& result);
  void go_on();

 private:
  Service& service_;
  queue::ClientId client_;
  const Caller& caller_;
  queue::Now now_;
  std::optional<Reply> reply_;
  std::size_t held_ = 0;
  Awaits awaits_ = Awaits::kNothing;
  std::uint64_t awaited_ = 0;    // the body, the worker, or the event
  queue::JobId awaited_of_ = 0;  // the job
  OnBody on_body_;
  OnNoBody on_no_body_;
  Again again_ = nullptr;
  OnDelivery on_delivery_;
  OnTried on_tried_;
  OnCheckpoint on_checkpoint_;
  Step next_;
};

}  // namespace carillon::server
