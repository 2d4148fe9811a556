// How a session answers: each function adds one reply to the queue, and reports a failure to the
// service, which logs it.
//
//   Answers answers(service, replies);
//   answers.or_failure([&] { answers.done(engine.bury(client, now, 7, 0), "BURIED\r\n"); });
//
// A reply leaves when what it reports is durable. NOT_FOUND waits for all changes so far: the job
// or tube may just have been deleted, and no client may learn that before the deletion is durable.
//
// Thread safety: none.
#pragma once

#include <optional>
#include <stdexcept>
#include <string_view>

#include "carillon/queue/engine.h"
#include "server/net/reply_queue.h"
#include "server/service.h"

namespace carillon::server::beanstalk {

// Replies that several files use.
inline constexpr std::string_view kBadFormat = "BAD_FORMAT\r\n";
inline constexpr std::string_view kOutOfRange = "OUT_OF_RANGE\r\n";

class Answers {
 public:
  // Both must outlive this object.
  Answers(Service& service, ReplyQueue& replies) : service_(service), replies_(replies) {}

  void not_found();
  void out_of_memory(std::string_view why);
  void store_failure(std::string_view error);
  void bad_option(std::string_view why);
  void yaml(queue::Sequence durable_at, std::string_view yaml);

  // The outcome of a command: the word `done`, or NOT_FOUND.
  void done(const queue::Outcome& outcome, std::string_view done);
  // `done` is the word for success, and a space; the job's id follows it.
  void change(const queue::ChangeOutcome& outcome, std::string_view done, queue::JobId id);
  void failed_attempt(const queue::FailOutcome& outcome, queue::JobId id);
  void batch(const queue::BatchOutcome& outcome);

  // Returns what `parse` does. None if it refuses an option; then the client has got the error.
  template <class Parse>
  auto or_bad_option(Parse parse) -> std::optional<decltype(parse())> {
    try {
      return parse();
    } catch (const std::invalid_argument& error) {
      bad_option(error.what());
      return std::nullopt;
    }
  }
  // Calls `action`, and answers the client if it throws: options that only the engine checks are
  // refused like the others.
  template <class Action>
  void or_failure(Action action) {
    try {
      action();
    } catch (const queue::StoreError& error) {
      store_failure(error.what());
    } catch (const queue::OverLimit& error) {
      out_of_memory(error.what());
    } catch (const std::invalid_argument& error) {
      bad_option(error.what());
    }
  }

 private:
  Service& service_;
  ReplyQueue& replies_;
};

}  // namespace carillon::server::beanstalk
