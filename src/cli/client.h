// A synchronous client of the beanstalk protocol: one method per command, which returns when the
// reply has arrived.
//
//   Client client(Stream::connect(address));
//   client.use("mail");
//   const std::uint64_t id = client.put("hello", {.delay = 250ms}).id;
//   if (auto job = client.reserve(2s)) client.delete_job(job->id);
//
// Expected outcomes are return values: a time-out or a missing job is an empty optional or false.
// Everything else is an exception: Unavailable (stream.h) if the same call may succeed later,
// Failure if it will not. Refused is an Unavailable after which the connection is still usable, and
// its jobs are still reserved unless the server stops.
//
// Times are sent in milliseconds, with Carillon's own verbs (put-ms, put-at, release-ms,
// reserve-with-timeout-ms). Sources: docs/protocol.md for these verbs, beanstalkd's
// doc/protocol.txt for the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "cli/stats_fields.h"
#include "cli/stream.h"

namespace carillon::cli {

// Comes before the server's words for what is wrong with an option.
inline constexpr std::string_view kBadOption = "BAD_OPTION ";

// The server answered that it cannot do this now, for example because its disk is full.
struct Refused : Unavailable {
  Refused(const std::string& text, std::string_view answer) : Unavailable(text), reply(answer) {}

  std::string reply;  // "INTERNAL_ERROR"
};

// The token that was shown does not allow the command. The connection is still usable.
struct Forbidden : Failure {
  using Failure::Failure;
};

struct Job {
  std::uint64_t id = 0;
  std::string body;
};

// The due time, urgency and time to run of a job.
struct PutOptions {
  std::chrono::milliseconds delay{0};
  std::optional<std::uint64_t> due_at;  // UTC ms; if set, `delay` is ignored
  std::chrono::milliseconds ttr{60'000};
  std::uint32_t priority = 65'536;  // the smaller, the sooner; below 1024 is "urgent"
  // Further options of put-job (docs/protocol.md), as they are sent: "key=a on-conflict=replace".
  // Only Carillon knows them.
  std::string named = {};
};

// The result of a put.
struct PutAnswer {
  enum class Result : std::uint8_t {
    kInserted,
    kReplaced,  // the job with the key was changed
    kExists,    // nothing was changed: this job has the key, or had it and is done
    kReserved,  // nothing was changed: a worker holds the job with the key
  };
  std::uint64_t id = 0;
  Result result = Result::kInserted;
  std::string state = {};  // the state of a job that exists: "dead"; "done" if it is gone
};

// One of many puts.
struct NewJob {
  std::string name;  // what messages call it: "job 17"
  std::string_view body;
  PutOptions options;
};

// The result of a batch.
struct BatchAnswer {
  enum class Result : std::uint8_t {
    kPut,
    kAlready,     // nothing was changed: `jobs` is the answer to the first batch with the token
    kOtherBatch,  // nothing was changed: the token is of another batch
    kRefused,     // nothing was changed: the job number `refused`, from 1, stood in the way
  };
  Result result = Result::kPut;
  std::vector<PutAnswer> jobs = {};
  std::size_t refused = 0;
  std::string why = {};  // in the server's words
};

// The result of a touch.
enum class TouchAnswer : std::uint8_t {
  kTouched,
  kCancelAsked,  // touched, and somebody has asked for the job's cancel
  kNone,         // this client does not hold the job
};

// Wishes of a worker for a job whose attempt has failed. The job's policy decides the rest.
struct FailOptions {
  std::optional<std::chrono::milliseconds> delay = {};
  std::optional<std::uint32_t> max_attempts = {};
};

// The future of a job whose attempt has failed.
struct FailAnswer {
  enum class Result : std::uint8_t {
    kAgain,      // it comes again after `delay`
    kDead,       // it is buried
    kCancelled,  // it was deleted, as its cancel was asked for
    kNone,       // this client does not hold it
  };
  Result result = Result::kNone;
  std::uint64_t attempts = 0;  // that have failed
  std::chrono::milliseconds delay{0};
};

// The largest body that any server takes, in bytes: beanstalkd's with `-z`.
inline constexpr std::uint32_t kLargestBody = 1u << 30;

// Returns the server's words for why it refuses one job of a batch, as a sentence.
std::string refusal_text(std::string_view why, std::size_t body_bytes);

// Not thread-safe. The server gives the client's reserved jobs back when the client is destroyed.
class Client {
 public:
  explicit Client(Stream stream) : stream_(std::move(stream)) {}

  // See Stream::interrupt_on().
  void interrupt_on(int fd) { stream_.interrupt_on(fd); }

  // Selects the tube that put(), kick() and peek() act on from now on.
  // REQUIRES, for every tube name passed to this class: parse_tube() accepts it.
  void use(std::string_view tube);

  // Names this client in the stories of jobs. Returns false if the server does not know Carillon's
  // own verbs: beanstalkd. From then on reserve() and release() use those of
  // beanstalkd, with times in whole seconds, rounded up. REQUIRES: 1 to 100 bytes without a space.
  bool name(std::string_view name);
  // Finds out the same with a command that has no effect: put() uses beanstalkd's, too.
  bool probe();
  // Returns false after name() or probe() did.
  bool knows_own_verbs() const { return knows_own_verbs_; }

  // Selects the tubes that reserve() takes jobs from.
  // REQUIRES: `tubes` is not empty; watch_only() was not called before.
  void watch_only(const std::vector<std::string>& tubes);

  // Adds a tube to those, or takes one away. The last one stays.
  void watch(std::string_view tube);
  void ignore(std::string_view tube);

  // The functions that put jobs wait while the tube takes none because of its rate, and try again.
  // A long wait is told on standard error. They throw Refused if they would wait for more than this
  // without any success.
  static constexpr std::chrono::minutes kLongestRest{10};

  // Returns the job's id, and with a key, what became of the put. Throws Failure with the reason if
  // the server refuses the job, or, before anything is sent, if the body has more than kLargestBody
  // bytes.
  PutAnswer put(std::string_view body, const PutOptions& options);

  // Puts all of the jobs with one command, or none of them, and returns an answer for each: the
  // result is kPut or kAlready. With a token `once`, the same batch is not put twice, whatever the
  // tube. Throws Failure with the number of the job that the server refuses, from 1, and the
  // reason. REQUIRES: 1 to 1 000 bodies, of together no more than kMaxBatchBytes with kBatchLine
  // for each.
  BatchAnswer put_all(const std::vector<std::string>& bodies, const PutOptions& options,
                      const std::string& once);
  static constexpr std::size_t kBatchLine = 16;
  // Returns how many jobs a batch for the tube may have: `most`, or fewer by the tube's rate.
  std::size_t most_in_batch(std::string_view tube, std::size_t most);

  // Returns the next job of the watched tubes. Waits for at most `timeout`, or for ever if it has
  // no value; returns nothing when the time is up. REQUIRES: this client holds no reserved job.
  std::optional<Job> reserve(Patience timeout);

  // Returns false if there is no such job, or another connection has reserved it.
  bool delete_job(std::uint64_t id);
  // release(), bury() and touch() act on a job that this client has reserved. They return false if
  // the client does not hold it, for example because its ttr ran out.
  bool release(std::uint64_t id, std::uint32_t priority, std::chrono::milliseconds delay);
  bool bury(std::uint64_t id, std::uint32_t priority);
  bool touch(std::uint64_t id);

  // The same with Carillon's own verbs.
  TouchAnswer touch_job(std::uint64_t id);
  // The attempt has failed. The server keeps the first 1 000 bytes of `error`.
  FailAnswer fail(std::uint64_t id, std::string_view error, const FailOptions& options);

  // Lets no job of the tube be reserved for this many seconds; 0 ends that. Returns false if there
  // is no such tube. The longest pause, of 136 years, lasts until the tube is resumed.
  static constexpr std::uint32_t kPauseForGood = std::numeric_limits<std::uint32_t>::max();
  bool pause_tube(std::string_view tube, std::uint32_t seconds);
  // Returns the job of the used tube that leaves this state next: "ready", "delayed" or "buried".
  std::optional<Job> peek(std::string_view state);

  // Returns the names of all tubes.
  std::vector<std::string> tubes();
  StatsFields stats();
  std::optional<StatsFields> stats_job(std::uint64_t id);
  std::optional<StatsFields> stats_tube(std::string_view tube);

  // Throws Failure if the server does not know `verb`: it would carry out the body that follows the
  // verb as commands. `probe` is a command without an effect, as old as the verb.
  void require(std::string_view verb, const std::string& probe);
  // The next five send their commands together, and then read the replies: a slow link or disk is
  // waited for once, not for each command. REQUIRES: what they are given, and the replies together,
  // have at most some MiB.

  // As put(), in this order. What it throws names the job. Some may have been put then.
  std::vector<PutAnswer> put_each(std::span<const NewJob> jobs);
  // Returns for each id what delete_job() would.
  std::vector<bool> delete_each(std::span<const std::uint64_t> ids);
  std::vector<std::optional<Job>> peek_each(std::span<const std::uint64_t> ids);
  std::vector<std::optional<StatsFields>> stats_of_each(std::span<const std::uint64_t> ids);
  // Returns at most `most` jobs of the watched tubes, without waiting for any.
  std::vector<Job> reserve_now(std::size_t most);

  // Puts a batch, all of it or nothing: `data` and `options` are as put-jobs takes them. Throws if
  // nothing of it could be put now, or if the server knows no batches.
  BatchAnswer put_jobs(std::string_view data, std::string_view options);
  // As put(), with options as put-job takes them.
  PutAnswer put_job(std::string_view body, const std::string& options);

 private:
  // The command line of a put, without its end.
  std::string put_command(std::string_view body, const PutOptions& options) const;
  static void check_size(std::string_view body);
  // Sends a command with its body until the tube takes it, and returns the reply.
  std::string ask_to_put(const std::string& command, std::string_view body);
  static constexpr std::string_view kTooFast = "TOO_FAST ";
  // Waits if the reply says that the put is too fast, and returns true. `rested`: the time
  // that was waited so far.
  bool rests(std::string_view reply, std::chrono::milliseconds& rested);
  PutAnswer read_put(const std::string& command, const std::string& reply, std::size_t body_size);
  std::optional<PutAnswer> put_answer(const std::string& command, const std::string& reply) const;
  std::string ask(const std::string& command, Patience patience = kPatience);
  template <class Commands, class Read>
  void ask_all(const Commands& commands, Read read);
  bool ask_whether(const std::string& command, std::string_view yes);
  std::optional<Job> read_job(const std::string& command, const std::string& reply,
                              std::string_view keyword, std::string_view none);
  bool whether(const std::string& command, const std::string& reply, std::string_view yes) const;
  std::optional<StatsFields> ask_stats(const std::string& command);
  std::optional<StatsFields> read_stats(const std::string& command, const std::string& reply);
  std::string read_data(std::uint64_t size);
  std::uint64_t number_after(const std::string& command, const std::string& reply,
                             std::string_view keyword) const;
  [[noreturn]] void refuse_put(const std::string& command, const std::string& reply,
                               std::size_t body_size);
  [[noreturn]] void throw_unexpected(std::string_view command, std::string_view reply) const;

  Stream stream_;
  bool knows_own_verbs_ = true;
  WaitNotice notice_;
};

}  // namespace carillon::cli
