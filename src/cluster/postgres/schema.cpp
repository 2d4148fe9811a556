#include "cluster/postgres/schema.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/start_error.h"
#include "carillon/queue/store.h"

namespace carillon::cluster::postgres {
namespace {

// SQLSTATE.
constexpr std::string_view kNoSchema = "3F000";
constexpr std::string_view kNoTable = "42P01";
constexpr std::string_view kNoRight = "42501";
constexpr std::string_view kTableExists = "42P07";
constexpr std::string_view kTypeExists = "42710";  // another node makes the table now
constexpr std::string_view kRowExists = "23505";

// How long what drops or adds a partition may wait for a lock, and hold up those behind it.
constexpr const char* kLockWait = "set local lock_timeout = '200ms'; ";

constexpr Statement kCheck = {
    "",
    "select v.version::int8, pg_has_role(c.relowner, 'member')::int::int8,"
    " c.relowner::regrole::text, current_user::text"
    " from carillon.version v, pg_class c where c.oid = 'carillon.log'::regclass"};

// Whether there is a schema of this name, and tables in it. Everyone may see that.
constexpr Statement kFindSchema = {
    "",
    "select count(*)::int8, (select count(*)::int8 from pg_class c where c.relname = 'version'"
    " and c.relnamespace = any (array_agg(n.oid))) from pg_namespace n where n.nspname = "
    "'carillon'"};

// Entries are stored as they are: they do not compress much, and compression takes time.
constexpr const char* kTables = R"(
  create table carillon.version (version integer not null);
  create table carillon.shard (shard integer primary key, log_id bytea not null);
  create table carillon.log (
    shard integer not null, position bigint not null, epoch bigint not null, next bigint not null,
    written timestamptz not null, chain bytea not null, owner bytea not null, entry bytea not null,
    primary key (shard, position)) partition by range (shard, position);
  alter table carillon.log alter column entry set storage external;
  create table carillon.node (
    shard integer not null, id bigint not null, owner bytea not null, address text not null,
    http text not null, serves boolean not null,
    read bigint not null, flushed bigint not null, seen timestamptz not null,
    primary key (shard, id)) with (fillfactor = 50);
)";

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string random_bytes(std::size_t count) {
  std::random_device random;
  std::string bytes;
  while (bytes.size() < count) bytes += static_cast<char>(random());
  return bytes;
}

// A partition of what table `log` has.
std::string partition_script(Shard shard, std::uint64_t index) {
  const std::string name = "carillon." + partition_name(shard, index);
  const auto bound = [&](std::uint64_t at) {
    return "(" + std::to_string(shard) + ", " + std::to_string(at * kPartition) + ")";
  };
  // To attach an empty table takes a lock that no append waits for. `create … partition of` would
  // lock them out.
  return "create table " + name + " (like carillon.log including storage," +
         " primary key (shard, position));" + "alter table carillon.log attach partition " + name +
         " for values from " + bound(index) + " to " + bound(index + 1) + ";";
}

std::string first_rows() {
  const std::string version = std::to_string(kSchemaVersion);
  return "insert into carillon.version values (" + version + ");" +
         "insert into carillon.shard values (0, '\\x" + hex(random_bytes(16)) + "');" +
         "insert into carillon.log values (0, 0, 0, 1, clock_timestamp(), '\\x" +
         hex(std::string(32, '\0')) + "', '\\x" + hex(std::string(16, '\0')) + "', '');";
}

Reply failed(std::string why) {
  return {Outcome::kFailed, std::move(why)};
}

std::string quoted(const std::string& name) {
  return '"' + name + '"';
}

std::string missing_right(const Connection& connection, bool has_schema) {
  const std::string user = quoted(connection.user());
  const std::string database = quoted(connection.database());
  return has_schema
             ? "user " + user + " may not make tables in the schema carillon of database " +
                   database + "; its owner can allow it: grant usage, create on schema " +
                   "carillon to " + user
             : "user " + user + " may not make a schema in database " + database +
                   "; its owner can allow it: grant create on database " + database + " to " + user;
}

[[noreturn]] void throw_from(const Reply& reply) {
  if (reply.outcome == Outcome::kFailed) throw base::StartError(reply.why);
  throw queue::LogUnavailable(reply.why);
}

}  // namespace

Reply check_schema(Connection& connection, Deadline deadline) {
  Reply reply = connection.run(kCheck, {}, deadline);
  if (reply.state == kNoSchema || reply.state == kNoTable) {
    reply.why = "there is no cluster in " + connection.place() +
                " yet; make it by: carillon cluster init URL";
  } else if (reply.state == kNoRight) {
    reply.why = "user " + quoted(connection.user()) + " may not use the schema carillon in " +
                connection.place() + "; connect as the user who has made it";
  }
  if (!reply.done()) return reply;
  const Rows& rows = reply.rows;
  if (rows.count() != 1) {
    return failed("the schema carillon in " + connection.place() +
                  " has no version: it is not one that carillon cluster init has made");
  }
  if (const std::uint64_t version = rows.number(0, 0); version != kSchemaVersion) {
    return failed("the tables in " + connection.place() + " have version " +
                  std::to_string(version) + ", and this carillon knows version " +
                  std::to_string(kSchemaVersion) + "; use a carillon that knows version " +
                  std::to_string(version));
  }
  if (rows.number(0, 1) == 0) {
    return failed("user " + quoted(std::string(rows.bytes(0, 3))) +
                  " does not own the tables of the cluster; connect as user " +
                  std::string(rows.bytes(0, 2)));
  }
  return reply;
}

bool make_schema(Connection& connection, Deadline deadline) {
  Reply reply = connection.run(kFindSchema, {}, deadline);
  if (!reply.done()) throw_from(reply);
  const bool has_schema = reply.rows.number(0, 0) != 0;
  if (reply.rows.number(0, 1) != 0) {
    reply = check_schema(connection, deadline);
    if (!reply.done()) throw_from(reply);
    return false;
  }
  reply = connection.run_script((has_schema ? "" : std::string("create schema carillon;")) +
                                    kTables + partition_script(0, 0) + first_rows(),
                                deadline);
  if (reply.done()) return true;
  if (reply.state == kNoRight) throw base::StartError(missing_right(connection, has_schema));
  // Perhaps another one has made them meanwhile.
  const Reply again = check_schema(connection, deadline);
  if (again.done()) return false;
  throw_from(reply);
}

std::string partition_name(Shard shard, std::uint64_t index) {
  return "log_" + std::to_string(shard) + "_" + std::to_string(index);
}

Reply make_partition(Connection& connection, Shard shard, std::uint64_t index, Deadline deadline) {
  Reply reply = connection.run_script(kLockWait + partition_script(shard, index), deadline);
  const bool is_there = reply.state == kTableExists || reply.state == kTypeExists;
  if (is_there || reply.state == kRowExists) return {};
  return reply;
}

std::vector<std::uint64_t> partitions_of(const Rows& names, Shard shard) {
  const std::string beginning = "log_" + std::to_string(shard) + "_";
  std::vector<std::uint64_t> indexes;
  for (std::size_t row = 0; row < names.count(); ++row) {
    std::string_view name = names.bytes(row, 0);
    if (!name.starts_with(beginning)) continue;
    name.remove_prefix(beginning.size());
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error == std::errc() && end == name.data() + name.size()) indexes.push_back(index);
  }
  std::sort(indexes.begin(), indexes.end());
  return indexes;
}

Reply drop_partition(Connection& connection, Shard shard, std::uint64_t index, Deadline deadline) {
  return connection.run_script(kLockWait + ("drop table carillon." + partition_name(shard, index)),
                               deadline);
}

}  // namespace carillon::cluster::postgres
