// One HTTP client as a state machine without a socket: bytes come in, the functions of the API
// (routes.h) get requests, and replies go out. The protocol is HTTP/1.1 (RFC 9112). Connections
// stay open; a client may send several requests at once, which are carried out and answered in
// their order.
//
// Pages of other sites. Any web page can make the browser that shows it send requests to a port of
// the browser's machine. So the server refuses a request if
// - its Origin or Sec-Fetch-Site says that a page of another site has sent it, or
// - its Host is a name other than `localhost` and the names that the server was given: a site can
//   give its own name the address of this machine (DNS rebinding).
// Any page may link to a page that needs no token, such as those of the console: the browser shows
// it to its user, and the other site cannot read it.
//
// Tokens. If the server has tokens, each request shows one: `Authorization: Bearer TOKEN` (RFC
// 6750). The route says what the token must allow (routes.h). A wrong token closes the connection,
// so each guess costs a new connection. The token is checked as soon as the header is there: a
// request that is refused for it gets its connection closed, and its body is not read.
//
// Memory. A body is held as long as its request is answered. If there is no memory for the body,
// the request is refused and the connection closes.
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

  // Connects a client to the engine. The destructor calls close(). `names` are the names of the
  // server, besides localhost and addresses; they must outlive the session.
  Session(Service& service, const std::vector<std::string>& names);
  ~Session() override;

  // Protocol
  queue::ClientId client() const override { return client_; }
  using Protocol::receive;
  std::size_t receive(std::string_view bytes, std::uint64_t until_ns) override;
  // The wait for a job ends without a job, and so will every later wait.
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
  // A request whose header was checked.
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
  // Returns the route of the request if the client has the rights for it. Throws Problem.
  Match check(Request& request);
  void check_host(const Request& request) const;
  static void check_site(const Request& request);
  void check_token(const Request& request, const Match& match);
  void check_tube(const Match& match);
  // If the request's Idempotency-Key has an answer, sends that again. Else calls the function of
  // the route.
  void answer(const Route& route);
  void go_on();
  // Calls `step`, and then does what the function has asked for.
  template <class Step>
  void go_on_with(Step step);
  void work();
  void begin_to_tell(std::uint64_t after);
  // Sends the next event. REQUIRES: the feed has one.
  void tell_event();
  // Calls `action`. If it throws, answers with the problem.
  template <class Action>
  void or_answer_problem(Action action);
  // Adds the request that was carried out or refused to the audit.
  void audit(std::string_view outcome);
  void refuse(const Problem& problem);
  void send(const Reply& reply);
  // These send a large body.
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
  std::optional<Asked> asked_;                // while its body comes, or while it waits
  std::uint64_t told_ = 0;                    // while kTelling: the number of the last event
  std::optional<LargeReply> large_;           // while kSending; while kReading: for the next piece
  std::unique_ptr<RequestContext> exchange_;  // the request that is being answered
  std::optional<Once> once_;                  // the same, if its answer will be kept
  std::string path_;                          // the path of this request
  bool head_only_ = false;                    // its method is HEAD
  bool input_ended_ = false;
  bool is_revoked_ = false;  // the token is gone, or allows other things now
  bool keep_alive_ = true;   // another request may follow
};

}  // namespace carillon::server::http
