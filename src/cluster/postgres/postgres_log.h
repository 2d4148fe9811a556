// PostgresLog: the shared log of a shard in PostgreSQL, 13 or newer.
//
//   PostgresLog log("postgresql://carillon@db1,db2/carillon");
//   log.check({});                           // throws, if a node must not start on it
//   log.report(node);
//   const SharedLog::Answer answer = log.append(entry, bytes);
//
// schema.h says how it is stored. `carillon cluster init` makes the tables.
//
// What an append says (connection.h has the reasons):
// - no failure: PostgreSQL has committed it, on as many machines as its settings say.
// - kRefused: the statement found another chain or epoch at the end of the log, and inserted
//   nothing.
// - kUnavailable: no connection, or an error that has rolled it back; such as a lock that a rival
//   holds while its own commit waits for a standby.
// - kUnknown: all else.
//
// A reader that goes on after the connection was lost may find another server, with another
// history. So read() throws once after a loss, until place_of() was asked again. An append need not
// do so: it compares the chain.
//
// An append of 1 KB takes 0.12 ms (p50) and 0.21 ms (p99) on loopback without a sync (fsync = off),
// as tests/cluster/postgres_log_test.py prints. What the disks and the standby need comes on top.
//
// Errors: as SharedLog says. Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/postgres/connection.h"
#include "cluster/postgres/schema.h"
#include "cluster/shared_log.h"

namespace carillon::cluster::postgres {

class PostgresLog final : public SharedLog {
 public:
  // How many partitions beyond the current one report() keeps.
  static constexpr std::uint64_t kAhead = 2;
  // read() returns about this many bytes at most, or one entry.
  static constexpr std::size_t kMostRead = std::size_t{8} << 20;

  // Does not connect yet. Throws StartError (base/start_error.h) if the URL is wrong or libpq is
  // missing.
  explicit PostgresLog(const std::string& url, Shard shard = 0);

  // Throws StartError if a node must not start on this log: there are no tables, or those of
  // another version or user; or a setting of the server is weak and not allowed (weaknesses.h).
  // Throws LogUnavailable (carillon/queue/store.h) if the server cannot be asked now.
  void check(const std::set<std::string>& allowed);

  LogId id() override;
  Place place_of(const Mark& mark) override;
  std::vector<Stored> read(Position after) override;
  Answer append(const Entry& entry, std::string_view bytes) override;
  void report(const Node& node) override;
  std::vector<Node> nodes() override;
  void trim(Position before) override;
  std::int64_t skew() override;

  // What `carillon cluster status` shows.
  struct Status {
    LogId log = {};
    Epoch epoch = 0;  // 0: nobody has claimed it yet
    Owner owner = {};
    LogNumber next = 1;
    Position first = 0;  // the first and the last position that has a row
    Position last = 0;
    std::chrono::milliseconds silent_for{0};  // since the last entry
    std::uint64_t bytes = 0;                  // the tables of all logs take them
    int server_version = 0;

    // The row at position 0 has no entry.
    std::uint64_t entries() const { return last - first + (first > 0 ? 1 : 0); }
  };
  Status status();

  // The hosts and the database, without user and password.
  const std::string& place() const { return connection_.place(); }
  Connection& connection() { return connection_; }

 private:
  // The last entry, as far as this object knows.
  struct Tail {
    Position position = 0;
    Epoch epoch = 0;
    Chain chain = {};
  };

  static Deadline deadline() { return Clock::now() + kPatience; }
  Reply connect(Deadline deadline);
  Reply run(const Statement& statement, const Values& values, Deadline deadline);
  Rows ask(const Statement& statement, const Values& values, Deadline deadline);

  Answer append_window(const Entry& entry, std::string_view bytes, Deadline deadline);
  Answer append_claim(const Entry& entry, std::string_view bytes, Deadline deadline);
  Reply insert(const Statement& statement, const Values& values, Deadline deadline);
  Answer answer_to(const Reply& reply, Epoch epoch);
  Reply find_tail(Deadline deadline);
  void keep_partitions_ahead(Position last, Deadline deadline);

  Connection connection_;
  Shard shard_;
  // The numbers of the connections for which these were done. 0: none.
  std::uint64_t checked_ = 0;
  std::uint64_t placed_ = 0;
  std::optional<Tail> tail_;
  // All partitions up to this one were there.
  std::optional<std::uint64_t> last_partition_;
  std::size_t most_read_ = kMostRead;
};

}  // namespace carillon::cluster::postgres
