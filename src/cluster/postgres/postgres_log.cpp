#include "cluster/postgres/postgres_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/start_error.h"
#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "cluster/entry_codec.h"
#include "cluster/postgres/weaknesses.h"

namespace carillon::cluster::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// SQLSTATE.
constexpr std::string_view kLockTimeout = "55P03";
constexpr std::string_view kNoPartition = "23514";  // check_violation: the log has no other check

constexpr Statement kId = {"", "select log_id from carillon.shard where shard = $1::int"};

// The entry at the position, and the first one behind it.
constexpr Statement kPlace = {
    "",
    "select (select chain from carillon.log where shard = $1::int and position = $2::int8),"
    " (select position from carillon.log where shard = $1::int and position > $2::int8"
    " order by position limit 1)"};

// Up to $3 bytes, or one entry. The lengths are read without the entries.
constexpr Statement kRead = {
    "carillon_read",
    "select position, chain, entry from (select *,"
    " sum(octet_length(entry)) over (order by position) - octet_length(entry) as before from"
    " (select position, chain, entry from carillon.log where shard = $1::int"
    " and position > $2::int8 order by position limit 4096) as first) as summed"
    " where before < $3::int8 order by position"};

constexpr Statement kTail = {"carillon_tail",
                             "select position, epoch, chain from carillon.log where shard = $1::int"
                             " order by position desc limit 1"};

// $1 shard, $2 position of the last entry, $3 its chain, $4 epoch, $5 owner, $6 next number,
// $7 the chain after the new entry, $8 the new entry.
constexpr Statement kAppend = {
    "carillon_append",
    "insert into carillon.log (shard, position, epoch, next, written, chain, owner, entry)"
    " select l.shard, l.position + 1, l.epoch, $6::int8, clock_timestamp(), $7::bytea, $5::bytea,"
    " $8::bytea from carillon.log l where l.shard = $1::int and l.position = $2::int8"
    " and l.chain = $3::bytea and l.epoch = $4::int8"
    " on conflict do nothing returning position, chain"};

// $1 shard, $2 the epoch that it begins, $3 owner, $4 the claim.
constexpr Statement kClaim = {
    "carillon_claim",
    "insert into carillon.log (shard, position, epoch, next, written, chain, owner, entry)"
    " select l.shard, l.position + 1, l.epoch + 1, l.next, clock_timestamp(),"
    " sha256(l.chain || $4::bytea), $3::bytea, $4::bytea from (select shard, position, epoch, next,"
    " chain from carillon.log where shard = $1::int order by position desc limit 1) l where "
    "l.epoch + 1 = $2::int8"
    " on conflict do nothing returning position, chain"};

constexpr Statement kReport = {
    "carillon_report",
    "insert into carillon.node values ($1::int, $2::int8, $3::bytea, convert_from($4::bytea,"
    " 'UTF8'), convert_from($7::bytea, 'UTF8'), $8::int8 = 1, $5::int8, $6::int8, "
    "clock_timestamp())"
    " on conflict (shard, id) do update set"
    " owner = excluded.owner, address = excluded.address, http = excluded.http,"
    " serves = excluded.serves, read = excluded.read,"
    " flushed = excluded.flushed, seen = excluded.seen"
    " returning (select position from carillon.log where shard = $1::int"
    " order by position desc limit 1)"};

constexpr Statement kNodes = {
    "",
    "select id, owner, address, read, flushed,"
    " (extract(epoch from clock_timestamp() - seen) * 1000)::int8, http, serves::int::int8"
    " from carillon.node"
    " where shard = $1::int"};

constexpr Statement kNow = {"carillon_now",
                            "select (extract(epoch from clock_timestamp()) * 1000000)::int8"};

constexpr Statement kStatus = {
    "",
    "select (select log_id from carillon.shard where shard = $1::int), l.epoch, l.owner, l.next,"
    " (select position from carillon.log where shard = $1::int order by position limit 1),"
    " l.position, (extract(epoch from clock_timestamp() - l.written) * 1000)::int8,"
    " (select sum(pg_total_relation_size(relid))::int8 from pg_partition_tree('carillon.log')"
    " where isleaf), current_setting('server_version_num')::int8"
    " from carillon.log l where l.shard = $1::int order by l.position desc limit 1"};

// The high and the low 64 bits of an id, as the codec writes them.
template <typename Id>
Id id_of(std::string_view bytes) {
  CARILLON_REQUIRE(bytes.size() == 16, bytes.size());
  Id id;
  std::memcpy(&id.high, bytes.data(), sizeof id.high);
  std::memcpy(&id.low, bytes.data() + sizeof id.high, sizeof id.low);
  return id;
}

milliseconds not_negative(std::uint64_t ms) {
  return milliseconds(std::max<std::int64_t>(static_cast<std::int64_t>(ms), 0));
}

std::int64_t utc_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

PostgresLog::PostgresLog(const std::string& url, Shard shard) : connection_(url), shard_(shard) {}

// --- Asking.

// Every connection may lead to another server, so every one checks the tables.
Reply PostgresLog::connect(Deadline deadline) {
  if (Reply reply = connection_.connect(deadline); !reply.done()) return reply;
  if (checked_ == connection_.number()) return {};
  last_partition_.reset();
  Reply reply = check_schema(connection_, deadline);
  if (reply.done()) checked_ = connection_.number();
  // The caller has sent nothing yet.
  if (reply.outcome == Outcome::kNoAnswer) reply.outcome = Outcome::kNotSent;
  return reply;
}

Reply PostgresLog::run(const Statement& statement, const Values& values, Deadline deadline) {
  if (Reply reply = connect(deadline); !reply.done()) return reply;
  return connection_.run(statement, values, deadline);
}

Rows PostgresLog::ask(const Statement& statement, const Values& values, Deadline deadline) {
  const Reply reply = run(statement, values, deadline);
  if (!reply.done()) throw queue::LogUnavailable(reply.why);
  return reply.rows;
}

void PostgresLog::check(const std::set<std::string>& allowed) {
  const Deadline until = deadline();
  const Reply reply = connect(until);
  if (reply.outcome == Outcome::kFailed) throw base::StartError(reply.why);
  if (!reply.done()) throw queue::LogUnavailable(reply.why);
  const std::vector<std::string> lines = weaknesses(connection_, allowed, until);
  if (lines.empty()) return;
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : "; ") + line;
  throw base::StartError("the log in " + place() + " can lose what it has confirmed: " + all);
}

LogId PostgresLog::id() {
  const Rows rows = ask(kId, Values().number(shard_), deadline());
  if (rows.count() == 0) {
    throw queue::LogUnavailable("there is no shard " + std::to_string(shard_) + " in " + place());
  }
  return id_of<LogId>(rows.bytes(0, 0));
}

Place PostgresLog::place_of(const Mark& mark) {
  const Rows rows = ask(kPlace, Values().number(shard_).number(mark.position), deadline());
  placed_ = connection_.number();
  const bool has_next = !rows.is_null(0, 1);
  if (mark.position == 0) {
    const bool has_all = !has_next || rows.number(0, 1) == 1;
    return has_all ? Place::kThere : Place::kBeginsAfter;
  }
  if (rows.is_null(0, 0)) return has_next ? Place::kBeginsAfter : Place::kEndsBefore;
  return chain_of(rows.bytes(0, 0)) == mark.chain ? Place::kThere : Place::kAnother;
}

std::vector<SharedLog::Stored> PostgresLog::read(Position after) {
  const Deadline until = deadline();
  Reply reply = connect(until);
  if (reply.done() && placed_ != 0 && placed_ != connection_.number())
    throw queue::LogUnavailable(place() + ": the connection was lost");
  if (reply.done()) {
    reply = connection_.run(kRead, Values().number(shard_).number(after).number(most_read_), until);
    // A slow line brings less in time.
    const bool was_slow = reply.outcome == Outcome::kNoAnswer;
    most_read_ = was_slow ? most_read_ / 8 + 1 : std::min(most_read_ * 2, kMostRead);
  }
  if (!reply.done()) throw queue::LogUnavailable(reply.why);
  std::vector<Stored> entries;
  for (std::size_t row = 0; row < reply.rows.count(); ++row) {
    entries.push_back({reply.rows.number(row, 0), std::string(reply.rows.bytes(row, 2)),
                       chain_of(reply.rows.bytes(row, 1))});
  }
  return entries;
}

std::int64_t PostgresLog::skew() {
  const Deadline until = deadline();
  if (const Reply reply = connect(until); !reply.done()) throw queue::LogUnavailable(reply.why);
  const std::int64_t before = utc_us();
  const Rows rows = ask(kNow, {}, until);
  const std::int64_t after = utc_us();
  // The engine read its clock between the two.
  const auto engine = static_cast<std::int64_t>(rows.number(0, 0));
  const std::int64_t least = before - engine;
  const std::int64_t most = after - engine;
  const std::int64_t us = least > 0 ? least : most < 0 ? most : 0;
  return us / 1'000;
}

// --- Appending.

SharedLog::Answer PostgresLog::append(const Entry& entry, std::string_view bytes) {
  const Deadline until = deadline();
  return entry.kind == Entry::Kind::kClaim ? append_claim(entry, bytes, until)
                                           : append_window(entry, bytes, until);
}

SharedLog::Answer PostgresLog::append_window(const Entry& entry, std::string_view bytes,
                                             Deadline deadline) {
  if (!tail_ || tail_->chain != entry.before) {
    if (const Reply reply = find_tail(deadline); !reply.done())
      return {Failure::kUnavailable, reply.why};
    if (!tail_ || tail_->chain != entry.before)
      return {Failure::kRefused, "the log goes on from another entry"};
  }
  const std::string before = bytes_of(entry.before);
  const std::string after = bytes_of(entry.after);
  const std::string owner = bytes_of(entry.owner);
  Values values;
  values.number(shard_).number(tail_->position).bytes(before).number(entry.epoch).bytes(owner);
  values.number(entry.end).bytes(after).bytes(bytes);
  return answer_to(insert(kAppend, values, deadline), entry.epoch);
}

// A rival's window may take the position between the statement's reading and its writing. It is
// tried again then: a claim compares the epoch alone.
SharedLog::Answer PostgresLog::append_claim(const Entry& entry, std::string_view bytes,
                                            Deadline deadline) {
  constexpr int kMostTries = 20;
  const std::string owner = bytes_of(entry.owner);
  Values values;
  values.number(shard_).number(entry.epoch).bytes(owner).bytes(bytes);
  for (int i = 0; i < kMostTries; ++i) {
    Answer answer = answer_to(insert(kClaim, values, deadline), entry.epoch);
    if (answer.failure != Failure::kRefused) return answer;
    if (const Reply reply = find_tail(deadline); !reply.done())
      return {Failure::kUnavailable, reply.why};
    if (!tail_) return {Failure::kUnavailable, "the log in " + place() + " has no row"};
    if (tail_->epoch + 1 != entry.epoch)
      return {Failure::kRefused, "the log is in epoch " + std::to_string(tail_->epoch)};
  }
  return {Failure::kUnavailable, "others write to the log all the time"};
}

// An insert that finds no partition is rolled back.
Reply PostgresLog::insert(const Statement& statement, const Values& values, Deadline deadline) {
  Reply reply = run(statement, values, deadline);
  if (reply.state != kNoPartition) return reply;
  reply = find_tail(deadline);
  if (reply.done() && tail_)
    reply = make_partition(connection_, shard_, (tail_->position + 1) / kPartition, deadline);
  return reply.done() ? run(statement, values, deadline) : Reply{Outcome::kNotSent, reply.why};
}

SharedLog::Answer PostgresLog::answer_to(const Reply& reply, Epoch epoch) {
  if (reply.outcome == Outcome::kNotSent || reply.outcome == Outcome::kFailed)
    return {Failure::kUnavailable, reply.why};
  tail_.reset();
  if (reply.outcome == Outcome::kNoAnswer) return {Failure::kUnknown, reply.why};
  if (reply.rows.count() == 0) return {Failure::kRefused, "another node has written to the log"};
  const Chain chain = chain_of(reply.rows.bytes(0, 1));
  tail_ = Tail{reply.rows.number(0, 0), epoch, chain};
  return {std::nullopt, {}, tail_->position, chain};
}

Reply PostgresLog::find_tail(Deadline deadline) {
  tail_.reset();
  Reply reply = run(kTail, Values().number(shard_), deadline);
  if (reply.done() && reply.rows.count() == 1)
    tail_ =
        Tail{reply.rows.number(0, 0), reply.rows.number(0, 1), chain_of(reply.rows.bytes(0, 2))};
  return reply;
}

// --- Partitions.

void PostgresLog::keep_partitions_ahead(Position last, Deadline deadline) {
  const std::uint64_t wanted = last / kPartition + kAhead;
  if (last_partition_ && *last_partition_ >= wanted) return;
  const Rows names = ask(kPartitions, {}, deadline);
  const std::vector<std::uint64_t> there = partitions_of(names, shard_);
  for (std::uint64_t index = last / kPartition; index <= wanted; ++index) {
    if (std::binary_search(there.begin(), there.end(), index)) continue;
    const Reply reply = make_partition(connection_, shard_, index, deadline);
    if (!reply.done()) throw queue::LogUnavailable(reply.why);
  }
  last_partition_ = wanted;
}

void PostgresLog::trim(Position before) {
  const Deadline until = deadline();
  const Rows last = ask(kTail, Values().number(shard_), until);
  if (last.count() == 0) return;
  before = std::min<Position>(before, last.number(0, 0));
  const Rows names = ask(kPartitions, {}, until);
  for (const std::uint64_t index : partitions_of(names, shard_)) {
    if ((index + 1) * kPartition > before) return;
    const Reply reply = drop_partition(connection_, shard_, index, until);
    if (reply.state == kLockTimeout) return;  // another time
    if (!reply.done()) throw queue::LogUnavailable(reply.why);
  }
}

// --- Nodes.

void PostgresLog::report(const Node& node) {
  const Deadline until = deadline();
  const std::string owner = bytes_of(node.owner);
  Values values;
  values.number(shard_).number(node.id).bytes(owner).bytes(node.address);
  values.number(node.read).number(node.flushed).bytes(node.http).number(node.serves ? 1 : 0);
  const Rows rows = ask(kReport, values, until);
  if (!rows.is_null(0, 0)) keep_partitions_ahead(rows.number(0, 0), until);
}

std::vector<SharedLog::Node> PostgresLog::nodes() {
  const Rows rows = ask(kNodes, Values().number(shard_), deadline());
  std::vector<Node> all;
  for (std::size_t row = 0; row < rows.count(); ++row) {
    all.push_back({.id = rows.number(row, 0),
                   .owner = id_of<Owner>(rows.bytes(row, 1)),
                   .address = std::string(rows.bytes(row, 2)),
                   .http = std::string(rows.bytes(row, 6)),
                   .serves = rows.number(row, 7) != 0,
                   .read = rows.number(row, 3),
                   .flushed = rows.number(row, 4),
                   .silent_for = not_negative(rows.number(row, 5))});
  }
  std::sort(all.begin(), all.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
  return all;
}

PostgresLog::Status PostgresLog::status() {
  const Rows rows = ask(kStatus, Values().number(shard_), deadline());
  if (rows.count() == 0) throw queue::LogUnavailable("the log in " + place() + " has no entry");
  return {.log = id_of<LogId>(rows.bytes(0, 0)),
          .epoch = rows.number(0, 1),
          .owner = id_of<Owner>(rows.bytes(0, 2)),
          .next = rows.number(0, 3),
          .first = rows.number(0, 4),
          .last = rows.number(0, 5),
          .silent_for = not_negative(rows.number(0, 6)),
          .bytes = rows.number(0, 7),
          .server_version = static_cast<int>(rows.number(0, 8)) / 10'000};
}

}  // namespace carillon::cluster::postgres
