// One connection to PostgreSQL. Every call has a deadline, and says for certain what it knows.
//
//   Connection connection("postgresql://carillon@db1,db2/carillon");
//   const Deadline deadline = Clock::now() + 5s;
//   if (connection.connect(deadline).done()) {      // does nothing if it is connected
//     const Reply reply = connection.run({"last", "select max(n) from t where s = $1::int8"},
//                                        Values().number(7), deadline);
//     switch (reply.outcome) …                      // kDone: reply.rows.number(0, 0)
//   }
//
// connect() connects at first, and again after the connection was lost. The library chooses among
// several hosts in the URL, and takes one that can be written to, unless the URL says otherwise
// (target_session_attrs). It waits 2 s for each host (connect_timeout). If that takes longer than a
// call may, it goes on in a thread of its own: a name server that does not answer holds nobody up.
//
// What is certain about a statement, which is a transaction of its own:
// - It is *done* once the server is ready for the next one. PostgreSQL announces the result of a
//   statement before its commit, so the result alone says nothing.
// - It *failed*, and never has an effect, if the server has sent an error of severity ERROR and is
//   then ready for the next one. After FATAL, and after the codes by which a pooler reports that
//   its server is gone, nothing is certain.
// - A warning makes a statement uncertain. If somebody cancels a backend that waits for a standby,
//   PostgreSQL commits, says so in a warning, and reports success: a fail-over would lose it.
// - If a statement was sent and nothing of this came, the server may carry it out later, however
//   much later: a stopped server has it in its socket. The connection is closed then.
//
// A pooler between must keep a session for its client (pgbouncer: pool_mode = session): statements
// are prepared, and settings are made once for each connection.
//
// No text that comes from here has the password.
//
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
struct pg_conn;    // NOLINT(readability-identifier-naming): libpq's
struct pg_result;  // NOLINT(readability-identifier-naming)
}

namespace carillon::cluster::postgres {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// The least version of the server.
inline constexpr int kLeastVersion = 13;

// Every $N needs a cast: `$1::int8`.
struct Statement {
  // It is prepared under this name at its first use. Empty: not prepared.
  const char* name = "";
  const char* text = "";
};

// The values of $1, $2, … in order.
class Values {
 public:
  Values& number(std::uint64_t value);
  // The bytes must outlive the statement.
  Values& bytes(std::string_view value);

 private:
  friend class Connection;
  struct Value {
    std::string own;
    std::string_view bytes;
    bool is_number = false;
  };
  std::vector<Value> values_;
};

// The rows of the last statement. A column is an int8 (number) or a bytea or text (bytes).
class Rows {
 public:
  std::size_t count() const;
  bool is_null(std::size_t row, int column) const;
  std::uint64_t number(std::size_t row, int column) const;
  // A view that is valid as long as the rows.
  std::string_view bytes(std::size_t row, int column) const;

 private:
  friend class Connection;
  std::shared_ptr<pg_result> result_;
};

enum class Outcome : std::uint8_t {
  kDone,      // and committed
  kNotSent,   // it never has an effect
  kFailed,    // it never has an effect; Reply::state says why
  kNoAnswer,  // it may have an effect, now or later
};

struct Reply {
  Outcome outcome = Outcome::kDone;
  std::string why = {};    // one line; empty if it is done
  std::string state = {};  // SQLSTATE, if it failed
  Rows rows = {};

  bool done() const { return outcome == Outcome::kDone; }
};

class Connection {
 public:
  // Does not connect yet. Throws StartError (base/start_error.h) if the URL is wrong or libpq is
  // missing.
  explicit Connection(const std::string& url);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects, if there is no connection or the server has closed it meanwhile. Done, kNotSent, or
  // kFailed: the server is too old.
  Reply connect(Deadline deadline);

  // Runs a statement. kNotSent if there is no connection.
  Reply run(const Statement& statement, const Values& values, Deadline deadline);

  // Runs statements with ; between them, as one transaction. No values, and no rows.
  Reply run_script(const std::string& statements, Deadline deadline);

  // Closes the connection. The next call connects anew, perhaps to another host.
  void close();

  // Counts the connections that were made, from 1. 0: none yet.
  std::uint64_t number() const { return number_; }

  // The names of the hosts and of the database as the URL has them: "db1:5432,db2:5432/carillon".
  const std::string& place() const { return place_; }
  // The user of this connection. REQUIRES: connected.
  std::string user() const;
  std::string database() const;

 private:
  struct Attempt;

  void read_url();
  bool is_open() const { return connection_ != nullptr; }
  bool has_died();
  Reply set_up(Deadline deadline);
  Reply closed() const { return {Outcome::kNotSent, place_ + ": the connection is closed"}; }
  Reply prepare(const Statement& statement, Deadline deadline);
  // Returns what has become of what was sent. `sent` is what libpq has returned.
  Reply finish(int sent, Deadline deadline);
  bool wait(Deadline deadline);
  void take(pg_result* result, Reply& reply, bool& uncertain);
  Reply lost(std::string why);
  std::string shown(std::string text) const;

  std::string url_;
  std::string place_;
  std::set<std::string> secrets_;
  std::shared_ptr<Attempt> attempt_;
  pg_conn* connection_ = nullptr;
  std::uint64_t number_ = 0;
  std::set<std::string> prepared_;
  // The first warning since the statement was sent, or why the server closes the connection.
  std::string warning_;
};

}  // namespace carillon::cluster::postgres
