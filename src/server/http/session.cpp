// http::Session (session.h).
#include "server/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "carillon/require.h"
#include "server/api/operation.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

namespace carillon::server::http {

namespace {

// At most this many bytes of events wait for a slow listener. It gets later events from the feed.
constexpr std::size_t kMostUnread = 16 << 10;

}  // namespace

Session::Session(Service& service, const std::vector<std::string>& names)
    : Protocol(service.barrier()),
      service_(service),
      names_(names),
      client_(service.engine().connect()),
      memory_(service.memory()),
      caller_(service.tokens()),
      reader_(kLargestRequest) {
  ++service_.counters().connections;
  ++service_.counters().total_connections;
}

Session::~Session() {
  close();
}

void Session::close() {
  if (state_ == State::kClosed) return;
  if (exchange_ || (asked_ && is_revoked_)) tell_of_the_end();
  service_.feed().leave(client_);
  service_.checkpoint().end(client_);
  state_ = State::kClosed;
  once_.reset();
  exchange_.reset();
  asked_.reset();
  reader_.forget();
  --service_.counters().connections;
  service_.bodies().forget(client_);
  service_.engine().disconnect(client_, service_.now());
}

Protocol::Wants Session::wants() const {
  if (state_ == State::kClosed) return Wants::kNothing;
  if (state_ == State::kReading || state_ == State::kWaiting || state_ == State::kTrying)
    return Wants::kDelivery;
  if (state_ == State::kTelling) {
    if (service_.feed().after(told_) == nullptr) return Wants::kDelivery;
    return replies_.bytes() < kMostUnread ? Wants::kTurn : Wants::kRoom;
  }
  if (service_.are_too_many_unsent(replies_.bytes())) return Wants::kRoom;
  if (no_room_) return Wants::kStore;
  const bool goes_on = state_ == State::kWorking || state_ == State::kSending;
  return turn_over_ || goes_on ? Wants::kTurn : Wants::kInput;
}

bool Session::mid_command() const {
  return state_ == State::kRequest && !reader_.is_fresh();
}

void Session::count_memory() {
  const std::size_t replies = replies_.memory();
  const std::size_t body = exchange_ ? exchange_->request.memory() + exchange_->held()
                           : asked_  ? asked_->request.memory() + reader_.body_bytes()
                                     : 0;
  memory_.set(std::max<std::size_t>(body, reader_.body_bytes()) +
              (replies > kOwnReplies ? replies - kOwnReplies : 0));
}

std::string_view Session::failure_reply() const {
  return "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
}

std::string_view Session::plain_text_reply() const {
  return "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 45\r\n"
         "Connection: close\r\n\r\nThis port speaks TLS: write https, not http.\n";
}

std::size_t Session::receive(std::string_view bytes, std::uint64_t until_ns) {
  turn_over_ = no_room_ = false;
  std::size_t used = 0;
  for (bool first = true; wants() == Wants::kInput || wants() == Wants::kTurn; first = false) {
    if (!first && service_.now().mono_ns >= until_ns) {
      turn_over_ = true;
      break;
    }
    if (state_ == State::kTelling) {
      tell_event();
      continue;
    }
    if (state_ == State::kSending) {
      go_on_sending();
      continue;
    }
    if (state_ != State::kWorking && reader_.is_done() && !asked_) {
      check_whole_request();
      if (!asked_) continue;  // the request was refused
    }
    if (state_ == State::kWorking || reader_.is_done()) {
      if (may_append() && !service_.store_has_room()) {
        no_room_ = true;
        break;
      }
      state_ == State::kWorking ? work() : take_request();
      continue;
    }
    if (used == bytes.size()) break;
    std::size_t taken = 0;
    keep_alive_ = false;  // the end of a bad request cannot be found
    or_answer_problem([&] {
      taken = reader_.read(bytes.substr(used));
      look_at_header();
      look_at_size();
    });
    used += taken;
    if (state_ == State::kClosed) return bytes.size();
    if (taken == 0) break;
  }
  return used;
}

// For a request that comes at once with its body: finds its route, and checks the request.
void Session::check_whole_request() {
  ++heads_;
  Request request = reader_.take_header();
  keep_alive_ = request.keep_alive;
  or_answer_problem([&] {
    try {
      Match match = check(request);
      asked_ = Asked{.request = std::move(request), .match = std::move(match)};
    } catch (...) {
      reader_.take_body();
      throw;
    }
  });
}

// An older route does not declare whether it appends.
bool Session::may_append() const {
  const Operation* const next = exchange_ ? exchange_->operation : asked_->match.route->operation;
  return next == nullptr || next->appends == Appends::kYes;
}

void Session::look_at_header() {
  if (asked_ || !reader_.has_header() || reader_.is_done()) return;
  ++heads_;
  Request request = reader_.take_header();
  Match match = check(request);
  asked_ = Asked{.request = std::move(request), .match = std::move(match)};
}

void Session::require_size(const Match& match, std::uint64_t bytes) {
  const bool is_read = match.route != nullptr && match.route->method == "GET";
  const std::uint64_t most = is_read ? kOwnBody : kLargestRequest;
  if (bytes > most)
    throw Problem(kTooLarge, fmt::format("the body of a request may have {} bytes", most));
}

// Refuses a body as soon as its size is known, if there is no memory for it.
void Session::look_at_size() {
  const std::uint64_t bytes = reader_.body_bytes();
  require_size(asked_ ? asked_->match : Match(), bytes);
  if (bytes > kOwnBody) {
    count_memory();
    if (service_.is_out_of_memory() || bytes > service_.most_for_one())
      throw Problem(kNoMemory, fmt::format("there is no memory for a body of {} bytes", bytes));
  }
  if (reader_.wants_continue()) replies_.add_at_once("HTTP/1.1 100 Continue\r\n\r\n");
}

void Session::take_request() {
  or_answer_problem([&] {
    Request request = std::move(asked_->request);
    Match match = std::move(asked_->match);
    asked_.reset();
    request.body = reader_.take_body();
    keep_alive_ = request.keep_alive;
    require_size(match, request.body.size());
    check_tube(match);
    const bool is_of_the_moment =
        match.route->rights.needs == Needs::kNothing || match.route->pattern == "/metrics";
    if (service_.refuses_commands() && !is_of_the_moment) throw unavailable();
    exchange_ = std::make_unique<RequestContext>(service_, client_, caller_, std::move(request));
    exchange_->names = std::move(match.names);
    exchange_->audited_as = match.route->audited_as;
    exchange_->operation = match.route->operation;
    check_input(*match.route, exchange_->request);
    answer(*match.route);
    go_on();
  });
}

void Session::answer(const Route& route) {
  const Operation* const row = route.operation;
  if (row != nullptr && row->method != "GET" && row->first_answer == FirstAnswer::kInMemory) {
    if (auto once = once_of(*exchange_)) once_.emplace(std::move(*once));
  }
  auto first = first_answer(*exchange_, once_);
  if (!first) return route.answer(*exchange_);
  once_.reset();
  exchange_->answer(std::move(*first));
}

// Sends the reply, or gets what the function has asked for.
void Session::go_on() {
  while (exchange_->awaits() == RequestContext::Awaits::kBody) {
    const BodyName name{.id = exchange_->awaited_body()};
    const auto body = body_at_hand(service_.store(), name);
    if (!body) {
      service_.bodies().read(client_, name);
      state_ = State::kReading;
      return;
    }
    exchange_->body_came(*body);
  }
  if (exchange_->awaits() == RequestContext::Awaits::kDelivery) {
    state_ = State::kWaiting;
    if (input_ended_) service_.engine().stop_waiting(exchange_->awaited_worker());
    return;
  }
  if (exchange_->awaits() == RequestContext::Awaits::kTrial ||
      exchange_->awaits() == RequestContext::Awaits::kCheckpoint) {
    state_ = State::kTrying;
    return;
  }
  if (exchange_->awaits() == RequestContext::Awaits::kTurn) {
    state_ = State::kWorking;
    return;
  }
  if (exchange_->awaits() == RequestContext::Awaits::kEvents)
    return begin_to_tell(exchange_->events_after());
  auto reply = exchange_->take_reply();
  if (reply) keep_answer(*exchange_, once_, *reply);
  if (reply) exchange_->add_headers(reply->headers);
  if (reply) audit(reply->status < 300 ? "done" : std::to_string(reply->status));
  once_.reset();
  exchange_.reset();
  if (reply) send(*reply);
}

// The reply ends with the connection, so that clients of HTTP/1.0 understand it, too.
void Session::begin_to_tell(std::uint64_t after) {
  exchange_.reset();
  replies_.add(service_.engine().last_sequence(), head_of_events(service_.now().utc_ns));
  if (std::exchange(head_only_, false)) return close();
  service_.feed().listen(client_);
  state_ = State::kTelling;
  told_ = std::max(after + 1, service_.feed().oldest()) - 1;
}

// A caller who may not read the audit gets no events of it.
void Session::tell_event() {
  const Feed::Event* const event = service_.feed().after(told_);
  CARILLON_REQUIRE(event != nullptr, told_);
  if (!event->is_audit || caller_.may(Needs::kAdmin))
    replies_.add(event->durable_at, std::string_view(event->text));
  told_ = event->number;
}

bool Session::has_fallen_behind() const {
  return state_ == State::kTelling && service_.feed().has_dropped(told_) &&
         !service_.is_unavailable();
}

template <class Step>
void Session::go_on_with(Step step) {
  state_ = State::kRequest;
  or_answer_problem([&] {
    step(*exchange_);
    go_on();
  });
}

void Session::work() {
  go_on_with([](RequestContext& x) { x.go_on(); });
}

void Session::body_read(const Body& body) {
  if (state_ != State::kReading) return;
  if (large_) return send_piece(body);
  go_on_with([&](RequestContext& x) { x.body_came(body); });
}

void Session::deliver(const queue::Delivery& delivery) {
  if (state_ == State::kWaiting) go_on_with([&](RequestContext& x) { x.delivered(delivery); });
}

void Session::tried(const push::PostResult& result) {
  if (state_ == State::kTrying) go_on_with([&](RequestContext& x) { x.tried(result); });
}

void Session::checkpoint_made(const CheckpointResult& result) {
  if (state_ == State::kTrying) go_on_with([&](RequestContext& x) { x.checkpoint_made(result); });
}

void Session::end_of_input() {
  input_ended_ = true;
  if (state_ == State::kWaiting) service_.engine().stop_waiting(exchange_->awaited_worker());
  if (state_ == State::kTelling) close();
}

template <class Action>
void Session::or_answer_problem(Action action) {
  try {
    action();
  } catch (const Problem& problem) {
    refuse(problem);
  } catch (const queue::LogUnavailable&) {
    refuse(unavailable());
  } catch (const queue::StoreDamage& error) {
    service_.report_store_failure(error.what());
    refuse(Problem(kDamaged, error.what()));
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
    refuse(Problem(kFailed, error.what()));
  } catch (const queue::OverLimit& error) {
    refuse(Problem(kNoMemory, error.what()));
  } catch (
      const std::invalid_argument& error) {  // the engine has refused a value that only it checks
    refuse(Problem(kBadRequest, error.what()));
  }
}

void Session::audit(std::string_view outcome) {
  if (!exchange_ || exchange_->audited_as.empty()) return;
  const bool has_name = exchange_->target.empty() && !exchange_->names.empty();
  service_.feed().tell(
      {.at = {exchange_->now().utc_ns / 1'000'000},
       .who = caller_.shown_as(service_.engine().name_of(client_)),
       .action = exchange_->audited_as,
       .target = has_name ? exchange_->names.front() : exchange_->target,
       .outcome = exchange_->outcome.empty() ? std::string(outcome) : exchange_->outcome});
}

// The answer waits for the disk: a missing job may be gone by a change that is not durable yet.
void Session::refuse(const Problem& problem) {
  audit(problem.detail());
  const std::unique_ptr<RequestContext> refused = std::move(exchange_);
  once_.reset();
  Reply reply{.status = problem.kind().status,
              .type = kProblemJson,
              .body = problem.json(path_),
              .headers = problem.headers(),
              .durable_at = problem.waits() ? service_.engine().last_sequence() : 0,
              .at_once = !problem.waits() && service_.refuses_commands()};
  if (refused) refused->add_headers(reply.headers);
  if (reply.status == 503) reply.headers.emplace_back("Retry-After", "1");
  send(reply);
}

void Session::send(const Reply& reply) {
  const std::string head = head_of(reply, keep_alive_, service_.now().utc_ns);
  const std::string_view body = head_only_ ? std::string_view() : std::string_view(reply.body);
  if (reply.at_once) {
    replies_.add_at_once(std::string_view(head), body);
  } else {
    replies_.add(reply.durable_at, std::string_view(head), body);
  }
  path_.clear();
  if (!std::exchange(head_only_, false) && reply.large) {
    large_ = reply.large;
    state_ = State::kSending;
    return;
  }
  end_reply();
}

void Session::end_reply() {
  if (!keep_alive_) close();
}

void Session::go_on_sending() {
  if (const auto body = body_at_hand(service_.store(), large_->next)) return send_piece(*body);
  service_.bodies().read(client_, large_->next);
  state_ = State::kReading;
}

// The job and its body may be gone meanwhile. The client then sees that the reply is too short.
void Session::send_piece(const Body& body) {
  if (!body.bytes || body.bytes->empty()) {
    service_.report_cut_reply(
        fmt::format("the body of job {} cannot be read to its end: {}", large_->job, body.error));
    large_.reset();
    return close();
  }
  state_ = State::kSending;
  replies_.add_to_last(*body.bytes);
  large_->sent += body.bytes->size();
  ++large_->next.piece;
  if (large_->sent < large_->bytes) return;
  large_.reset();
  state_ = State::kRequest;
  end_reply();
}

}  // namespace carillon::server::http
