// The replies that several commands have (answers.h).
#include "server/beanstalk/answers.h"

#include "server/beanstalk/batch.h"
#include "server/beanstalk/command.h"

namespace carillon::server::beanstalk {

void Answers::not_found() {
  replies_.add(service_.engine().last_sequence(), "NOT_FOUND\r\n");
}

void Answers::out_of_memory(std::string_view why) {
  service_.report_out_of_memory(why);
  replies_.add(0, "OUT_OF_MEMORY\r\n");
}

void Answers::store_failure(std::string_view error) {
  service_.report_store_failure(error);
  replies_.add(0, "INTERNAL_ERROR\r\n");
}

void Answers::bad_option(std::string_view why) {
  replies_.add(0, "BAD_OPTION ", why, kEnd);
}

void Answers::yaml(queue::Sequence durable_at, std::string_view yaml) {
  replies_.add(durable_at, "OK ", yaml.size(), kEnd, yaml, kEnd);
}

void Answers::done(const queue::Outcome& outcome, std::string_view done) {
  if (!outcome.done) return not_found();
  replies_.add(outcome.durable_at, done);
}

void Answers::change(const queue::ChangeOutcome& outcome, std::string_view done, queue::JobId id) {
  using Result = queue::ChangeOutcome::Result;
  switch (outcome.result) {
    case Result::kDone:
      return replies_.add(outcome.durable_at, done, id, kEnd);
    case Result::kAsked:
      return replies_.add(outcome.durable_at, "CANCEL_ASKED ", id, kEnd);
    case Result::kReserved:
      return replies_.add(outcome.durable_at, "IS_RESERVED ", id, kEnd);
    case Result::kTooFar:
      return replies_.add(outcome.durable_at, kOutOfRange);
    case Result::kNone:
      return not_found();
  }
}

void Answers::failed_attempt(const queue::FailOutcome& outcome, queue::JobId id) {
  using Result = queue::FailOutcome::Result;
  switch (outcome.result) {
    case Result::kAgain:
      return replies_.add(outcome.durable_at, "AGAIN ", outcome.attempts, " ", outcome.delay, kEnd);
    case Result::kDead:
      return replies_.add(outcome.durable_at, "DEAD ", outcome.attempts, kEnd);
    case Result::kCancelled:
      return replies_.add(outcome.durable_at, "CANCELLED ", id, kEnd);
    case Result::kNone:
      return not_found();
  }
}

void Answers::batch(const queue::BatchOutcome& outcome) {
  using Result = queue::BatchOutcome::Result;
  if (outcome.result == Result::kOtherBatch)
    return replies_.add(outcome.durable_at, "OTHER_BATCH\r\n");
  using PutResult = queue::PutOutcome::Result;
  const bool refuses_all =
      outcome.result == Result::kRefused && (outcome.jobs.back().result == PutResult::kDraining ||
                                             outcome.jobs.back().result == PutResult::kTooFast);
  if (refuses_all) return replies_.add(outcome.durable_at, put_answer(outcome.jobs.back()), kEnd);
  if (outcome.result == Result::kRefused) {
    return replies_.add(outcome.durable_at, "REFUSED ", outcome.stopper + 1, " ",
                        put_answer(outcome.jobs.back()), kEnd);
  }
  replies_.add(outcome.durable_at, outcome.result == Result::kPut ? "JOBS " : "ALREADY ",
               outcome.jobs.size(), kEnd);
  for (const queue::PutOutcome& put : outcome.jobs) {
    replies_.add_to_last(put_answer(put));
    replies_.add_to_last(kEnd);
  }
}

}  // namespace carillon::server::beanstalk
