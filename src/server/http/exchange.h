// A request that is being answered: what the functions of the API (routes.h) work with.
//
//   void answer_one(Exchange& x, queue::JobId id) {
//     const auto stats = x.engine().job_stats(x.now(), id);
//     if (!stats) throw Problem(kNotFound, "there is no such job");
//     x.read_body(
//         id, stats->record.body_id(),
//         [stats = *stats](Exchange& x, std::string_view body) {
//           x.answer({.body = json_of(stats, body), .durable_at = stats.durable_at});
//         },
//         answer_one);
//   }
//
// Such a function answers, or asks for a body, or throws Problem. It may throw queue::StoreError
// and queue::OverLimit, too.
//
// Thread safety: none; an exchange belongs to its session.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/engine.h"
#include "server/http/reply.h"
#include "server/http/request.h"
#include "server/service.h"

namespace carillon::server::http {

class Exchange {
 public:
  using OnBody = std::function<void(Exchange&, std::string_view body)>;
  using Again = void (*)(Exchange&, queue::JobId);

  Exchange(Service& service, queue::ClientId client, Request asked)
      : request(std::move(asked)), service_(service), client_(client), now_(service.now()) {}

  const Request request;
  // The parts of the path that the route leaves open, in their order, decoded.
  std::vector<std::string> names;

  Service& service() { return service_; }
  queue::Engine& engine() { return service_.engine(); }
  queue::ClientId client() const { return client_; }
  // The time at which the request is carried out.
  queue::Now now() const { return now_; }

  // Returns names[0] as the number of a job. Throws Problem.
  queue::JobId job_id() const;
  // Makes names[0] the tube in use of the client. Throws Problem if it is no name.
  const std::string& use_tube();
  // Throws Problem if the server takes no jobs now.
  void require_room();

  void answer(Reply reply) { reply_ = std::move(reply); }
  // `then` is called with the body, at once or later, unless it cannot be read: the request is
  // answered with the reason then. If the job was deleted meanwhile, or has another body, `again`
  // is called with it instead, to look anew. REQUIRES: the function returns after this.
  void read_body(queue::JobId job, queue::JobId body_id, OnBody then, Again again);

  // For the session: what the function has asked for.
  std::optional<Reply> take_reply() { return std::exchange(reply_, std::nullopt); }
  std::optional<queue::JobId> awaited_body() const { return awaited_; }
  // Calls what waits for the body. It may wait for another one then. Throws Problem if there is no
  // body because it is damaged.
  void body_came(const Body& body);

 private:
  Service& service_;
  queue::ClientId client_;
  queue::Now now_;
  std::optional<Reply> reply_;
  std::optional<queue::JobId> awaited_;
  queue::JobId awaited_of_ = 0;  // the job
  OnBody on_body_;
  Again again_ = nullptr;
};

}  // namespace carillon::server::http
