// A synchronous client of the beanstalk protocol: one method per command, which returns when the
// reply is there.
//
//   Client client(Stream::connect(address));
//   client.use("mail");
//   const std::uint64_t id = client.put("hello", {.delay = 250ms});
//   if (auto job = client.reserve(2s)) client.delete_job(job->id);
//
// What may well happen is a return value: a time-out and a job that is not there are an empty
// optional or false. Everything else is an exception: Unavailable (stream.h) if the same may work
// later, Failure if it will not. After Refused, which is an Unavailable, the client is still of use
// and its jobs are still reserved, unless the server ends as well.
//
// Times are sent in milliseconds, with Carillon's own verbs (put-ms, put-at, release-ms,
// reserve-with-timeout-ms). Source: docs/protocol.md, and beanstalkd's doc/protocol.txt for the
// others.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/stats_fields.h"
#include "cli/stream.h"
#include "server/beanstalk/service.h"

namespace carillon::cli {

/// The server answered that it cannot do this now: its disk is full, say.
struct Refused : Unavailable {
  Refused(const std::string& text, std::string_view answer) : Unavailable(text), reply(answer) {}

  std::string reply;  // "INTERNAL_ERROR"
};

struct Job {
  std::uint64_t id = 0;
  std::string body;
};

/// When and how urgently a job is handed out, and for how long.
struct PutOptions {
  std::chrono::milliseconds delay{0};
  std::optional<std::uint64_t> due_at;  // UTC ms; takes the place of `delay`
  std::chrono::milliseconds ttr{60'000};
  std::uint32_t priority = 65'536;  // the smaller, the sooner; below 1024 is "urgent"
};

/// The largest body that any server takes (`carillon serve --max-job-size`).
inline constexpr std::uint32_t kLargestBody = server::beanstalk::kLargestMaxJobSize;

/// Which job of a tube peek() looks at: the one that would be next to leave that state.
enum class PeekState { kReady, kDelayed, kBuried };

/// Not thread-safe. A job it reserved belongs to its connection, and is given back when the client
/// is destroyed.
class Client {
 public:
  explicit Client(Stream stream) : stream_(std::move(stream)) {}

  /// As Stream::interrupt_on().
  void interrupt_on(int fd) { stream_.interrupt_on(fd); }

  /// The tube that put, kick and peek act on from now on. REQUIRES of all tube names: parse_tube()
  /// accepts them.
  void use(std::string_view tube);

  /// From now on reserve from these tubes and no others. REQUIRES: not empty; no watch_only()
  /// before.
  void watch_only(const std::vector<std::string>& tubes);

  /// Returns the job's id. Throws Failure if the server refused the job, and says why; if the body
  /// has more than kLargestBody bytes, before anything is sent.
  std::uint64_t put(std::string_view body, const PutOptions& options);

  /// The next job of the watched tubes; waits for `timeout`, none: for ever. REQUIRES: this client
  /// holds no job.
  std::optional<Job> reserve(Patience timeout);

  /// False: there is no such job, or another connection has reserved it.
  bool delete_job(std::uint64_t id);

  /// These three: on a job this client has reserved; false: it has not, or no longer, because its
  /// ttr ran out.
  bool release(std::uint64_t id, std::uint32_t priority, std::chrono::milliseconds delay);
  bool bury(std::uint64_t id, std::uint32_t priority);
  bool touch(std::uint64_t id);

  /// Makes up to `bound` jobs of the used tube ready: buried ones, or if there are none delayed
  /// ones. Returns how many.
  std::uint64_t kick(std::uint32_t bound);
  bool kick_job(std::uint64_t id);

  std::optional<Job> peek(std::uint64_t id);
  std::optional<Job> peek(PeekState state);  // in the used tube

  StatsFields stats();
  std::optional<StatsFields> stats_job(std::uint64_t id);
  std::optional<StatsFields> stats_tube(std::string_view tube);

 private:
  std::string ask(const std::string& command, Patience patience = kPatience);
  bool ask_whether(const std::string& command, std::string_view yes);
  std::optional<Job> read_job(const std::string& command, const std::string& reply,
                              std::string_view keyword, std::string_view none);
  std::optional<StatsFields> ask_stats(const std::string& command);
  std::string read_data(std::uint64_t size);
  std::uint64_t number_after(const std::string& command, const std::string& reply,
                             std::string_view keyword) const;
  [[noreturn]] void refuse_put(const std::string& command, const std::string& reply,
                               std::size_t body_size);
  [[noreturn]] void surprised(std::string_view command, std::string_view reply) const;

  Stream stream_;
};

}  // namespace carillon::cli
