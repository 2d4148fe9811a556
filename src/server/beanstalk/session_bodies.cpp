// The commands whose replies have a body: reserve, reserve-job and the peeks (session.h).
//
// The engine names a job, and its body is fetched from the store: at once if it is at hand;
// otherwise by Service::bodies(), and the session waits. The job meanwhile:
// - `reserve` holds the job before the body is read, because only one client may get it. When the
//   body has come late, the job's ttr begins anew. If the body cannot be read, the job is given
//   back.
// - `reserve-job` and the peeks change nothing before the body has come.
//
// The first piece of a large body is fetched in this way, and the others one by one as the client
// takes them. With each piece the ttr begins anew. If a piece cannot be read, or the ttr was over,
// the reply cannot be completed: the session closes.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {

using queue::Delivery;

void Session::reserve(const Command& c) {
  became_worker();
  const std::optional<queue::Millis> timeout =
      c.verb == Verb::kReserve ? std::nullopt : std::optional(c.timeout);
  if (const auto delivery = service_.engine().reserve(client_, service_.now(), timeout))
    return answer(*delivery);
  state_ = State::kWaiting;
  if (input_ended_) service_.engine().stop_waiting(client_);
}

void Session::deliver(const Delivery& delivery) {
  if (state_ != State::kWaiting) return;
  state_ = State::kInput;
  answers_.or_failure([&] { answer(delivery); });
}

void Session::answer(const Delivery& delivery) {
  switch (delivery.kind) {
    case Delivery::Kind::kReserved:
      return gathered_ ? gather(delivery.job) : fetch(Asked::kReserve, delivery.job);
    case Delivery::Kind::kDeadlineSoon:
      gathered_.reset();
      return replies_.add(0, "DEADLINE_SOON\r\n");
    case Delivery::Kind::kTimedOut:
      gathered_.reset();
      return replies_.add(0, "TIMED_OUT\r\n");
  }
}

void Session::reserve_job(const Command& c) {
  const auto job = service_.engine().peek(service_.now(), c.id);
  if (!job) return answers_.not_found();
  fetch(Asked::kReserveJob, *job);
}

void Session::find(const std::optional<queue::JobView>& job) {
  if (!job) return answers_.not_found();
  fetch(Asked::kPeek, *job);
}

void Session::fetch(Asked asked, const queue::JobView& job) {
  asked_ = asked;
  job_ = job;
  const auto held = std::min<std::size_t>(job.body_bytes, queue::kBodyPiece);
  if (asked != Asked::kReserveJobs && !may_hold(held, kOwnReplies)) return refuse_to_send();
  if (const auto body = body_at_hand(service_.store(), {.id = job.body_id}))
    return answer_body(*body);
  service_.bodies().read(client_, {.id = job.body_id});
  state_ = State::kReading;
}

void Session::refuse_to_send() {
  if (asked_ == Asked::kReserve || asked_ == Asked::kReserveAlone)
    service_.engine().give_back(client_, service_.now(), job_.id);
  answers_.out_of_memory(kMemoryIsUsed);
}

void Session::body_read(const Body& body) {
  if (state_ != State::kReading) return;
  if (sent_ > 0) return send_piece(body);
  state_ = State::kInput;
  answers_.or_failure([&] {
    if (gathered_) gathered_->late = true;
    const bool holds = asked_ == Asked::kReserve || asked_ == Asked::kReserveAlone;
    if (holds && !service_.engine().touch(client_, service_.now(), job_.id).done)
      return answers_.store_failure("the ttr of job " + std::to_string(job_.id) +
                                    " was over before its body was read");
    answer_body(body);
  });
}

void Session::answer_body(const Body& body) {
  switch (asked_) {
    case Asked::kReserve:
    case Asked::kReserveAlone:
      return answer_reserved(body);
    case Asked::kReserveJobs:
      return add_gathered(body);
    case Asked::kReserveJob:
      return answer_reserved_job(body);
    case Asked::kPeek:
      return answer_found(body);
  }
}

void Session::answer_reserved(const Body& body) {
  if (!body.bytes) return answer_unreadable(body);
  answer_job(asked_ == Asked::kReserveAlone ? "JOBS 1\r\nRESERVED " : "RESERVED ", body);
}

void Session::answer_unreadable(const Body& body) {
  answers_.store_failure(bury_or_return(body));
}

// The client holds the job, but cannot get its body. Returns why.
std::string Session::bury_or_return(const Body& body) {
  queue::Engine& engine = service_.engine();
  const std::string job = "job " + std::to_string(job_.id);
  if (body.damaged) {
    try {
      engine.bury(client_, service_.now(), job_.id, job_.priority);
      return job + " is buried, as its body is damaged: " + body.error;
    } catch (const queue::StoreError& error) {
      engine.give_back(client_, service_.now(), job_.id);
      return job + ", whose body is damaged, cannot be buried: " + error.what();
    }
  }
  engine.give_back(client_, service_.now(), job_.id);
  return job + " cannot be handed out: " + body.error;
}

void Session::answer_reserved_job(const Body& body) {
  queue::Engine& engine = service_.engine();
  if (!body.bytes) return answer_found(body);
  const auto delivery = engine.reserve_job(client_, service_.now(), job_.id);
  if (!delivery) return answers_.not_found();
  became_worker();
  // The body may have been replaced while it was read.
  if (delivery->job.body_id != job_.body_id) return fetch(Asked::kReserve, delivery->job);
  job_ = delivery->job;
  answer_job("RESERVED ", body);
}

void Session::answer_found(const Body& body) {
  if (body.bytes) return answer_job("FOUND ", body);
  // The job may have been deleted meanwhile, or its body replaced.
  const auto job = service_.engine().peek(service_.now(), job_.id);
  if (body.damaged && !job) return answers_.not_found();
  if (job && job->body_id != job_.body_id) return fetch(asked_, *job);
  answers_.store_failure(body.error);
}

void Session::answer_job(std::string_view word, const Body& body) {
  const std::size_t bytes = body.bytes->size();
  if (bytes >= job_.body_bytes)
    return replies_.add(job_.durable_at, word, job_.id, " ", bytes, kEnd, *body.bytes, kEnd);
  replies_.add(job_.durable_at, word, job_.id, " ", job_.body_bytes, kEnd, *body.bytes);
  sent_ = static_cast<std::uint32_t>(bytes);
  state_ = State::kSending;
}

void Session::go_on_sending() {
  const BodyName next{.id = job_.body_id,
                      .piece = static_cast<std::uint32_t>(sent_ / queue::kBodyPiece)};
  if (const auto body = body_at_hand(service_.store(), next)) return send_piece(*body);
  service_.bodies().read(client_, next);
  state_ = State::kReading;
}

void Session::send_piece(const Body& body) {
  state_ = State::kSending;
  const std::string job = "job " + std::to_string(job_.id);
  if (!body.bytes || body.bytes->empty()) {
    service_.report_cut_reply("the body of " + job + " cannot be read to its end: " + body.error);
    return close();
  }
  // The ttr begins anew with each piece, so that a client that reads steadily keeps its job. If the
  // ttr was over already, another client may have the job.
  if (asked_ != Asked::kPeek && !service_.engine().touch(client_, service_.now(), job_.id).done) {
    service_.report_cut_reply("the ttr of " + job + " was over before its body was sent");
    return close();
  }
  replies_.add_to_last(*body.bytes);
  sent_ += static_cast<std::uint32_t>(body.bytes->size());
  if (sent_ < job_.body_bytes) return;
  replies_.add_to_last(kEnd);
  sent_ = 0;
  state_ = State::kInput;
}

}  // namespace carillon::server::beanstalk
