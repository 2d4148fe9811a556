#include "cluster/postgres/connection.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "carillon/require.h"
#include "cluster/postgres/libpq.h"

namespace carillon::cluster::postgres {
namespace {

using std::chrono::milliseconds;

constexpr int kBinary = 1;

// What every session gets. A statement ends before its caller gives up, mostly, so that the caller
// knows what became of it. Commits that wait for a standby are in no time-out.
constexpr const char* kSettings =
    "set statement_timeout = '4s'; set lock_timeout = '1s';"
    "set idle_in_transaction_session_timeout = '5s'; set client_min_messages = warning;"
    "set default_transaction_isolation = 'read committed'; set standard_conforming_strings = on;"
    // A plan for any position would open every partition.
    "set plan_cache_mode = force_custom_plan; set jit = off;"
    // All that is read is read by the primary key, in its order. Without statistics, the planner
    // would read all that is behind a position, and sort it.
    "set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off";

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::string line;
  for (const char c : text) {
    if (c == '\n') line += ';';
    const bool is_space = c == '\n' || c == '\t' || c == ' ';
    if (!is_space || !line.ends_with(' ')) line += is_space ? ' ' : c;
  }
  return line;
}

std::string field(const PGresult* result, int code) {
  const char* const text = libpq().error_field(result, code);
  return text != nullptr ? text : "";
}

// A pooler reports by these that its server is gone, and a server that it is about to go.
bool leaves_it_open(std::string_view state) {
  return state.starts_with("08") || state.starts_with("57P") || state == "40003";
}

// The caller's signals are none of a thread that connects.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// --- Values and rows.

Values& Values::number(std::uint64_t value) {
  values_.push_back({std::to_string(static_cast<std::int64_t>(value)), {}, true});
  return *this;
}

Values& Values::bytes(std::string_view value) {
  values_.push_back({{}, value, false});
  return *this;
}

std::size_t Rows::count() const {
  return result_ ? static_cast<std::size_t>(libpq().rows(result_.get())) : 0;
}

bool Rows::is_null(std::size_t row, int column) const {
  return libpq().is_null(result_.get(), static_cast<int>(row), column) != 0;
}

std::string_view Rows::bytes(std::size_t row, int column) const {
  const int at = static_cast<int>(row);
  return {libpq().value(result_.get(), at, column),
          static_cast<std::size_t>(libpq().length(result_.get(), at, column))};
}

std::uint64_t Rows::number(std::size_t row, int column) const {
  const std::string_view text = bytes(row, column);
  CARILLON_REQUIRE(text.size() == sizeof(std::uint64_t), text.size());
  std::uint64_t number = 0;
  for (const char c : text) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

// --- Connecting.

// What the thread that connects leaves behind. A connection that nobody takes is closed with it.
struct Connection::Attempt {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  pg_conn* found = nullptr;

  ~Attempt() {
    if (found != nullptr) libpq().finish(found);
  }

  void run(const std::string& url) {
    // What the URL says counts more: it comes last.
    constexpr std::array kNames = {"application_name",
                                   "connect_timeout",
                                   "keepalives_idle",
                                   "keepalives_interval",
                                   "keepalives_count",
                                   "tcp_user_timeout",
                                   "target_session_attrs",
                                   "client_encoding",
                                   "dbname",
                                   static_cast<const char*>(nullptr)};
    const std::array values = {"carillon", "2",          "5",    "2",         "2",
                               "5000",     "read-write", "UTF8", url.c_str(), kNames.back()};
    pg_conn* const made = libpq().connect(kNames.data(), values.data(), 1);
    const std::lock_guard lock(mutex);
    found = made;
    has_ended = true;
    ended.notify_all();
  }
};

Connection::Connection(const std::string& url) : url_(url) {
  read_url();
}

Connection::~Connection() {
  close();
}

Reply Connection::connect(Deadline deadline) {
  if (is_open() && !has_died()) return {};
  close();
  if (attempt_ == nullptr) {
    const BlockedSignals blocked;
    auto attempt = std::make_shared<Attempt>();
    try {
      std::thread([attempt, url = url_] { attempt->run(url); }).detach();
    } catch (const std::system_error& error) {
      return {Outcome::kNotSent, std::string("no thread for a connection: ") + error.what()};
    }
    attempt_ = std::move(attempt);
  }
  {
    std::unique_lock lock(attempt_->mutex);
    if (!attempt_->ended.wait_until(lock, deadline, [&] { return attempt_->has_ended; }))
      return {Outcome::kNotSent, place_ + " does not answer"};
    connection_ = std::exchange(attempt_->found, nullptr);
  }
  attempt_ = nullptr;
  ++number_;
  return set_up(deadline);
}

Reply Connection::set_up(Deadline deadline) {
  const Libpq& pq = libpq();
  const auto refused = [&](const std::string& why) {
    Reply reply{Outcome::kNotSent, shown(why)};
    close();
    return reply;
  };
  if (pq.status(connection_) != CONNECTION_OK)
    return refused(connection_ != nullptr ? pq.error_message(connection_) : "out of memory");
  if (const int version = pq.server_version(connection_) / 10'000; version < kLeastVersion) {
    Reply reply = refused(place_ + " is PostgreSQL " + std::to_string(version) +
                          "; a cluster needs " + std::to_string(kLeastVersion) + " or newer");
    reply.outcome = Outcome::kFailed;
    return reply;
  }
  // It may come from the environment or from a file.
  if (const char* const password = pq.password(connection_); password != nullptr)
    secrets_.emplace(password);
  pq.set_nonblocking(connection_, 1);
  pq.set_verbosity(connection_, PQERRORS_TERSE);
  pq.set_notice_receiver(
      connection_,
      [](void* self, const PGresult* notice) {
        std::string& warning = static_cast<Connection*>(self)->warning_;
        const std::string severity = field(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        const bool matters = severity == "WARNING" || severity == "FATAL" || severity == "PANIC";
        if (matters && warning.empty()) warning = field(notice, PG_DIAG_MESSAGE_PRIMARY);
      },
      this);
  const Reply reply = finish(pq.send_script(connection_, kSettings), deadline);
  return reply.done() ? reply : refused(reply.why);
}

void Connection::close() {
  if (connection_ != nullptr) libpq().finish(std::exchange(connection_, nullptr));
  prepared_.clear();
}

// A connection that nobody uses has little to read, unless the server has ended it.
bool Connection::has_died() {
  const Libpq& pq = libpq();
  warning_.clear();
  pollfd socket{pq.socket(connection_), POLLIN, 0};
  while (::poll(&socket, 1, 0) > 0)
    if (pq.consume_input(connection_) == 0) return true;
  // This makes libpq read what came, and so call the receiver of notices.
  const bool is_busy = pq.is_busy(connection_) != 0;
  return is_busy || !warning_.empty() || pq.status(connection_) != CONNECTION_OK;
}

// --- Statements.

Reply Connection::run(const Statement& statement, const Values& values, Deadline deadline) {
  if (!is_open()) return closed();
  const bool is_prepared = statement.name[0] != '\0';
  if (is_prepared && !prepared_.contains(statement.name)) {
    if (Reply reply = prepare(statement, deadline); !reply.done()) return reply;
  }
  std::vector<const char*> texts;
  std::vector<int> lengths;
  std::vector<int> formats;
  for (const Values::Value& value : values.values_) {
    // libpq takes a null pointer for a null.
    const char* const bytes = value.bytes.empty() ? "" : value.bytes.data();
    texts.push_back(value.is_number ? value.own.c_str() : bytes);
    lengths.push_back(static_cast<int>(value.bytes.size()));
    formats.push_back(value.is_number ? 0 : kBinary);
  }
  const Libpq& pq = libpq();
  const int count = static_cast<int>(texts.size());
  warning_.clear();
  const int sent = is_prepared
                       ? pq.send_prepared(connection_, statement.name, count, texts.data(),
                                          lengths.data(), formats.data(), kBinary)
                       : pq.send_statement(connection_, statement.text, count, nullptr,
                                           texts.data(), lengths.data(), formats.data(), kBinary);
  return finish(sent, deadline);
}

// What cannot be prepared is not run.
Reply Connection::prepare(const Statement& statement, Deadline deadline) {
  warning_.clear();
  Reply reply = finish(
      libpq().send_prepare(connection_, statement.name, statement.text, 0, nullptr), deadline);
  if (reply.outcome == Outcome::kNoAnswer) reply.outcome = Outcome::kNotSent;
  if (reply.done()) prepared_.insert(statement.name);
  return reply;
}

Reply Connection::run_script(const std::string& statements, Deadline deadline) {
  if (!is_open()) return closed();
  warning_.clear();
  return finish(libpq().send_script(connection_, statements.c_str()), deadline);
}

Reply Connection::finish(int sent, Deadline deadline) {
  const Libpq& pq = libpq();
  // A part may have been sent.
  if (sent == 0) return lost(pq.error_message(connection_));
  Reply reply;
  bool uncertain = false;
  while (true) {
    if (!wait(deadline)) {
      const bool is_late = pq.status(connection_) == CONNECTION_OK;
      return lost(is_late ? "no answer in time" : pq.error_message(connection_));
    }
    PGresult* const result = pq.get_result(connection_);
    if (result == nullptr) break;
    take(result, reply, uncertain);
  }
  if (uncertain) return lost(reply.why);
  if (pq.status(connection_) != CONNECTION_OK || pq.transaction_status(connection_) != PQTRANS_IDLE)
    return lost(pq.error_message(connection_));
  if (!warning_.empty() && reply.done()) return lost(warning_);
  // The host has become a standby. Another one may be the primary.
  if (reply.state == "25006") close();
  return reply;
}

// Returns once get_result() does not block; false: not before the deadline, or the connection is
// lost.
bool Connection::wait(Deadline deadline) {
  const Libpq& pq = libpq();
  int unsent = pq.flush(connection_);
  while (unsent == 1 || pq.is_busy(connection_) != 0) {
    if (unsent < 0) return false;
    const auto left =
        std::chrono::ceil<milliseconds>(std::max(deadline - Clock::now(), Clock::duration::zero()));
    const short events = static_cast<short>(unsent == 1 ? POLLIN | POLLOUT : POLLIN);
    pollfd socket{pq.socket(connection_), events, 0};
    const int ready = ::poll(&socket, 1, static_cast<int>(left.count()));
    if (ready == 0) return false;
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0 && pq.consume_input(connection_) == 0) return false;
    unsent = pq.flush(connection_);
  }
  return true;
}

void Connection::take(pg_result* result, Reply& reply, bool& uncertain) {
  std::shared_ptr<pg_result> owned(result, libpq().clear);
  const ExecStatusType status = libpq().result_status(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    reply.rows.result_ = std::move(owned);
    return;
  }
  if (!reply.done()) return;
  reply.outcome = Outcome::kFailed;
  reply.state = field(result, PG_DIAG_SQLSTATE);
  reply.why = shown(field(result, PG_DIAG_MESSAGE_PRIMARY));
  uncertain =
      field(result, PG_DIAG_SEVERITY_NONLOCALIZED) != "ERROR" || leaves_it_open(reply.state);
  if (reply.why.empty()) reply.why = shown(libpq().error_message(connection_));
}

Reply Connection::lost(std::string why) {
  Reply reply{Outcome::kNoAnswer, place_ + ": " + shown(std::move(why))};
  close();
  return reply;
}

// --- Texts.

std::string Connection::user() const {
  return libpq().user(connection_);
}

std::string Connection::database() const {
  return libpq().database(connection_);
}

std::string Connection::shown(std::string text) const {
  for (const std::string& secret : secrets_) {
    if (secret.empty()) continue;
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 3)
      text.replace(at, secret.size(), "***");
  }
  return one_line(std::move(text));
}

}  // namespace carillon::cluster::postgres
