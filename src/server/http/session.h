// One HTTP client as a state machine without a socket: bytes in, requests to the functions of the
// API (routes.h), replies out. The protocol is HTTP/1.1 (RFC 9112), with connections that stay open
// and requests in a row: they are carried out and answered in the order in which they came.
//
// Pages of other sites. Any web page can make the browser that shows it send requests to a port of
// the browser's machine. So a request is refused
// - whose Origin or Sec-Fetch-Site says that a page of another site has sent it, and
// - whose Host is a name, and not `localhost` or one that the server was given: a site may let its
//   own name mean this machine (DNS rebinding).
// A link may lead from anywhere to what needs no token, such as the pages of the console: the
// browser shows it to who has followed the link, and the other site sees nothing of it.
//
// Tokens. If the server has tokens, each request shows one: `Authorization: Bearer TOKEN` (RFC
// 6750). The route says what the token must allow (routes.h). A wrong token closes the connection,
// so that each try costs a new one. All this is looked at as soon as the header is there: the body
// of a request that is refused for it is not collected, and the connection closes.
//
// Memory. A body is held as long as its request is answered. A request whose body is larger than
// what there is memory for is refused, and the connection closes.
//
// Thread safety: none; all sessions of a service belong to its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/caller.h"
#include "server/api/idempotency.h"
#include "server/api/problem.h"
#include "server/api/request_context.h"
#include "server/http/request_reader.h"
#include "server/http/routes.h"
#include "server/net/protocol.h"
#include "server/service.h"

namespace carillon::server::http {

class Session final : public Protocol {
 public:
  // The largest body of a request, in bytes: a thousand jobs of a usual size.
  static constexpr std::uint64_t kLargestRequest = 4 << 20;

  // Connects a client to the engine. The destructor calls close(). `names` are those by which the
  // server may be called, beside localhost and addresses; they must outlive the session.
  Session(Service& service, const std::vector<std::string>& names);
  ~Session() override;

  // Protocol
  queue::ClientId client() const override { return client_; }
  using Protocol::receive;
  std::size_t receive(std::string_view bytes, std::uint64_t until_ns) override;
  // A wait for a job ends with no job, and so will every later one.
  void end_of_input() override;
  void deliver(const queue::Delivery& delivery) override;
  void body_read(const Body& body) override;
  void checkpoint_made(const CheckpointResult& result) override;
  void tried(const push::PostResult& result) override;
  void close() override;
  Wants wants() const override;
  bool mid_command() const override;
  bool awaits_head() const override { return state_ == State::kRequest && !reader_.has_header(); }
  bool is_at_work() const override { return service_.checkpoint().held_by(client_); }
  bool is_known() const override { return caller_.is_known(); }
  bool answers_anybody() const override { return true; }
  bool may_go_on() override;
  bool has_endless_reply() const override { return state_ == State::kTelling; }
  bool has_fallen_behind() const override;
  void count_memory() override;
  void forget_memory() override { memory_.set(0); }
  std::string_view failure_reply() const override;
  std::string_view plain_text_reply() const override;

 private:
  enum class State : std::uint8_t {
    kRequest,  // a request is next
    kReading,  // a body for the reply is being read
    kWaiting,  // a job is waited for
    kTrying,   // an endpoint is being tried out, or a checkpoint made
    kWorking,  // a part of the request was carried out, and the next one is next
    kSending,  // the reply has a part of a large body, and more of it is next
    kTelling,  // the reply has no end: events of the feed
    kClosed,
  };

  void tell_of_the_end();
  // A request whose header is there, and was checked.
  struct Asked {
    Request request;
    Match match;
  };

  void take_request();
  void check_whole_request();
  // Returns true if the next step may add changes to the store.
  bool may_append() const;
  void look_at_header();
  void look_at_size();
  static void require_size(const Match& match, std::uint64_t bytes);
  // Returns what answers the request, which the client may ask for. Throws Problem.
  Match check(Request& request);
  void check_host(const Request& request) const;
  static void check_site(const Request& request);
  void check_token(const Request& request, const Match& match);
  void check_tube(const Match& match);
  // Answers the request as before if it came with an Idempotency-Key that has an answer. Else the
  // route's function does.
  void answer(const Route& route);
  void go_on();
  // Calls `step` with the exchange, and goes on as it asks then.
  template <class Step>
  void go_on_with(Step step);
  void work();
  void begin_to_tell(std::uint64_t after);
  // Of the next event. REQUIRES: the feed has one.
  void tell_event();
  // Calls `action`, and answers with what it throws.
  template <class Action>
  void or_answer_problem(Action action);
  // Tells the audit of the request that has just been carried out, or refused.
  void audit(std::string_view outcome);
  void refuse(const Problem& problem);
  void send(const Reply& reply);
  // These send the reply with a large body.
  void go_on_sending();
  void send_piece(const Body& body);
  void end_reply();

  Service& service_;
  const std::vector<std::string>& names_;
  queue::ClientId client_;
  MemoryPool::Share memory_;
  Caller caller_;
  RequestReader reader_;
  State state_ = State::kRequest;
  bool turn_over_ = false;
  bool no_room_ = false;
  std::optional<Asked> asked_;                // while its body comes, or it waits
  std::uint64_t told_ = 0;                    // while kTelling: the number of the last event
  std::optional<LargeReply> large_;           // while kSending, and kReading for the next piece
  std::unique_ptr<RequestContext> exchange_;  // of the request that is being answered
  std::optional<Once> once_;                  // the same, if its answer is to be kept
  std::string path_;                          // of this request
  bool head_only_ = false;                    // its method is HEAD
  bool input_ended_ = false;
  bool is_revoked_ = false;  // the token is gone, or allows something else
  bool keep_alive_ = true;   // another request may follow
};

}  // namespace carillon::server::http
