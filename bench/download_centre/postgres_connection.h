// One connection to PostgreSQL that sends batches of prepared statements in libpq's pipeline mode
// and reads their results without blocking.
//
//   connection.execute("PREPARE due AS SELECT ...");
//   connection.add("due", {"500"});
//   connection.send();
//   ... connection.step([](const Result& result) { ... })     // true: all have come
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace carillon::bench {

class PostgresConnection {
 public:
  using Result = PGresult;

  explicit PostgresConnection(const std::string& server)
      : connection_(PQconnectdb(server.c_str()), &PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
  }

  int fd() const { return PQsocket(connection_.get()); }

  // Runs any SQL and waits. REQUIRES: before the first `add`.
  void execute(const std::string& sql) {
    const Owned result(PQexec(connection_.get(), sql.c_str()), &PQclear);
    check(result.get());
  }

  // Adds a prepared statement to the batch that `send` sends.
  void add(const char* name, const std::vector<std::string>& parameters = {}) {
    begin_batch();
    std::vector<const char*> values;
    for (const std::string& each : parameters) values.push_back(each.c_str());
    if (PQsendQueryPrepared(connection_.get(), name, static_cast<int>(values.size()), values.data(),
                            nullptr, nullptr, 0) != 1)
      fail();
  }
  // Adds any other statement without parameters.
  void add_statement(const char* sql) {
    begin_batch();
    if (PQsendQueryParams(connection_.get(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0) != 1)
      fail();
  }
  void send() {
    if (PQpipelineSync(connection_.get()) != 1) fail();
    awaited_ = true;
  }

  bool idle() const { return !awaited_; }

  // Reads what has come, and calls `on_result` for each result. Returns true if that was the rest
  // of the batch.
  template <class OnResult>
  bool step(OnResult on_result) {
    if (PQconsumeInput(connection_.get()) != 1) fail();
    while (awaited_ && PQisBusy(connection_.get()) == 0) {
      const Owned result(PQgetResult(connection_.get()), &PQclear);
      if (!result) continue;  // the end of one statement's results
      check(result.get());
      if (PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) {
        awaited_ = false;
        return true;
      }
      on_result(*result);
    }
    return false;
  }

  // Calls `on_notify` with the payload of each notification that `step` has read.
  template <class OnNotify>
  void take_notifications(OnNotify on_notify) {
    while (PGnotify* const found = PQnotifies(connection_.get())) {
      const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notification(found, &PQfreemem);
      on_notify(notification->extra);
    }
  }

 private:
  using Owned = std::unique_ptr<PGresult, decltype(&PQclear)>;

  void begin_batch() const {
    if (PQpipelineStatus(connection_.get()) == PQ_PIPELINE_OFF &&
        PQenterPipelineMode(connection_.get()) != 1)
      fail();
  }
  void check(const PGresult* result) const {
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_PIPELINE_SYNC)
      fail();
  }
  [[noreturn]] void fail() const {
    throw std::runtime_error(std::string("PostgreSQL: ") + PQerrorMessage(connection_.get()));
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  bool awaited_ = false;
};

}  // namespace carillon::bench
