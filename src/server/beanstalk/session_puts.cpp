// The commands put, put-ms, put-at and put-job: the line, the body, and the reply (session.h).
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::string_view kExpectedEnd = "EXPECTED_CRLF\r\n";
constexpr std::string_view kDraining = "DRAINING\r\n";

}  // namespace

void Session::begin_put_job(const Command& c) {
  try {
    options_ = parse_job_options(c.options, OptionsOf::kPut);
  } catch (const std::invalid_argument& error) {
    return refuse_options(c.bytes, error.what());
  }
  keep_texts();
  begin_put(c);
}

// The options point into their line, which does not last.
void Session::keep_texts() {
  const std::array<std::string_view*, 3> texts = {&options_.key, &options_.group,
                                                  &options_.attributes};
  option_text_.clear();
  for (const std::string_view* const text : texts) option_text_.append(*text);
  std::size_t at = 0;
  for (std::string_view* const text : texts) {
    const std::size_t bytes = text->size();
    *text = std::string_view(option_text_).substr(at, bytes);
    at += bytes;
  }
}

void Session::refuse_options(std::uint64_t bytes, std::string_view why) {
  refuse_body(bytes, "BAD_OPTION ", why);
}

void Session::refuse_body(std::uint64_t bytes, std::string_view word, std::string_view why) {
  discard_and_answer(bytes, std::string(word).append(why).append(kEnd));
}

void Session::begin_put(const Command& c) {
  if (c.bytes > service_.options().max_job_size)
    return discard_and_answer(c.bytes, "JOB_TOO_BIG\r\n");
  if (c.form == Form::kCountedBad) return replies_.add(0, kBadFormat);
  const auto held = std::min<std::size_t>(c.bytes, queue::kBodyPiece);
  if (!may_add_body(c.bytes, held)) return;
  became_producer();
  pending_ = c;
  if (c.bytes > queue::kBodyPiece) return begin_large_put();
  reader_.expect_body(c.bytes);
}

bool Session::has_room_for_body(std::uint64_t bytes, std::size_t held) {
  if (may_hold(held, kOwnBody)) return true;
  service_.report_out_of_memory(kMemoryIsUsed);
  discard_and_answer(bytes, "OUT_OF_MEMORY\r\n");
  return false;
}

bool Session::may_add_body(std::uint64_t bytes, std::size_t held) {
  if (!service_.is_out_of_memory()) return has_room_for_body(bytes, held);
  service_.report_out_of_memory(kSystemGivesNone);
  discard_and_answer(bytes, "OUT_OF_MEMORY\r\n");
  return false;
}

// Discards the body and its end, and then answers.
void Session::discard_and_answer(std::uint64_t bytes, std::string_view reply) {
  reply_ = reply;
  reader_.discard(bytes);
}

void Session::take_body(std::string_view body_and_end) {
  if (!body_and_end.ends_with(kEnd)) {
    replies_.add(0, kExpectedEnd);
    return end_if_lost();
  }
  body_and_end.remove_suffix(kEnd.size());
  if (pending_.verb == Verb::kPatchJob) return patch_job(body_and_end);
  if (pending_.verb == Verb::kFailJob) return fail_job(body_and_end);
  if (pending_.verb == Verb::kPutJobs) return put_jobs(body_and_end);
  if (pending_.verb == Verb::kDeleteJobs || pending_.verb == Verb::kReleaseJobs)
    return begin_each(body_and_end);
  put_job([&](queue::Now now, const queue::PutOrder& order) {
    return service_.engine().put(client_, now, order, body_and_end);
  });
}

// Returns the reply to a put that cannot be carried out at `now`, or nothing.
std::string_view Session::refusal(queue::Now now) {
  if (service_.draining()) return kDraining;
  if (service_.is_out_of_memory()) {
    service_.report_out_of_memory(kSystemGivesNone);
    return "OUT_OF_MEMORY\r\n";
  }
  if (service_.refuses_puts(now)) return "OUT_OF_MEMORY\r\n";
  if (pending_.ttr > queue::kMaxTtr) return kOutOfRange;
  if (is_in_seconds(pending_)) return "NOT_MILLISECONDS\r\n";
  return {};
}

template <class Put>
void Session::put_job(Put put) {
  const queue::Now now = service_.now();
  if (const std::string_view reply = refusal(now); !reply.empty()) return replies_.add(0, reply);
  answers_.or_failure([&] { answer_put(put(now, put_order())); });
}

queue::PutOrder Session::put_order() const {
  queue::PutOrder order{
      .priority = pending_.priority, .due_in = pending_.delay, .ttr = pending_.ttr};
  if (pending_.verb == Verb::kPutAt) order.due_at = pending_.due_at;
  return pending_.verb == Verb::kPutJob ? beanstalk::put_order(options_) : order;
}

// Clients of beanstalkd know this word; it means "try again later" (protocol.txt).
void Session::answer_put(const queue::PutOutcome& outcome) {
  const bool is_too_fast = outcome.result == queue::PutOutcome::Result::kTooFast;
  if (is_too_fast && pending_.verb == Verb::kPut) return replies_.add(0, "OUT_OF_MEMORY\r\n");
  replies_.add(outcome.durable_at, put_answer(outcome), kEnd);
}

// --- Large bodies.

void Session::begin_large_put() {
  const std::string_view reply = refusal(service_.now());
  if (!reply.empty()) return discard_and_answer(pending_.bytes, reply);
  if (refuse_fast_put()) return;
  try {
    large_ = service_.engine().begin_body(pending_.bytes);
    reader_.expect_pieces(pending_.bytes);
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
    discard_and_answer(pending_.bytes, "INTERNAL_ERROR\r\n");
  }
}

// A large body that will be refused should not be written to the disk. A put with a key may need no
// token.
bool Session::refuse_fast_put() {
  if (pending_.verb == Verb::kPutJob && !options_.key.empty()) return false;
  queue::Engine& engine = service_.engine();
  const std::string& tube = engine.tube_in_use(client_);
  const auto rate = engine.put_rate(service_.now(), tube);
  if (!rate || rate->tokens > 0 || engine.tube_settings(tube).refuses_puts) return false;
  if (pending_.verb == Verb::kPut) {
    discard_and_answer(pending_.bytes, "OUT_OF_MEMORY\r\n");
  } else {
    refuse_body(pending_.bytes, "TOO_FAST ", std::to_string(rate->next));
  }
  return true;
}

// Each piece may be refused like a put: a large body must not pass the limits of disk and memory
// that are reached while it comes. The rest of a body that was refused is discarded.
void Session::put_piece(std::string_view piece) {
  std::string_view reply = refusal(service_.now());
  try {
    if (reply.empty()) return service_.engine().add_piece(large_, piece);
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
    reply = "INTERNAL_ERROR\r\n";
  }
  give_up_large_body();
  discard_and_answer(reader_.left(), reply);
}

void Session::finish_large_put(std::string_view end) {
  bool done = false;
  if (end == kEnd) {
    put_job([&](queue::Now now, const queue::PutOrder& order) {
      const queue::PutOutcome outcome = service_.engine().put(client_, now, order, large_);
      done = outcome.done();
      return outcome;
    });
  } else {
    replies_.add(0, kExpectedEnd);
  }
  if (!done) give_up_large_body();
  if (end != kEnd) end_if_lost();
}

// If the store fails, the next start does this.
void Session::give_up_large_body() {
  try {
    service_.engine().give_up(large_);
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
  }
}

}  // namespace carillon::server::beanstalk
