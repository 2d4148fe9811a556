// The tables of a cluster in PostgreSQL. All are in the schema `carillon`.
//
//   version(version)                    one row: how the tables are made
//   shard(shard, log_id)                one row for each shard
//   log(shard, position, …, entry)      the shared logs
//   node(shard, id, …)                  what the nodes have reported
//
// The log has a row for each entry. A new one is inserted at the position after the last, if the
// last has the chain and the epoch that the entry goes on from; the primary key lets only one of
// two rivals in. So an append changes no row that is there, and what holds old rows back (a backup,
// a forgotten transaction, a replication slot) slows no append (decision 0220). The row at position
// 0 has no entry: it is what the first claim goes on from.
//
// The log is partitioned by shard and position, so that it is trimmed by dropping tables. A
// partition has kPartition positions, and the nodes make them ahead. Making one locks nobody out;
// dropping one waits for the statements that run, at most kLockWait.
//
// The user who makes the tables owns them, and the nodes connect as this user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/postgres/connection.h"
#include "cluster/role.h"

namespace carillon::cluster::postgres {

inline constexpr std::uint64_t kSchemaVersion = 1;
inline constexpr Position kPartition = 16'384;

// Counts the shards of a cluster, from 0.
using Shard = std::uint32_t;

// Says whether the tables are those of this version, and of this user. kFailed: they are not, and
// `why` says what to do. REQUIRES: the connection is open.
Reply check_schema(Connection& connection, Deadline deadline);

// Makes the tables, with one shard. Returns false if they are there already. Throws StartError
// (base/start_error.h) if that cannot be, and says which right is missing; LogUnavailable
// (carillon/queue/store.h) if the server cannot be asked now. REQUIRES: the connection is open.
bool make_schema(Connection& connection, Deadline deadline);

// Partition `index` has the positions from index * kPartition on.
std::string partition_name(Shard shard, std::uint64_t index);
// Makes it. Done also if another node has made it, or makes it now.
Reply make_partition(Connection& connection, Shard shard, std::uint64_t index, Deadline deadline);
// Returns the indexes of those that are there, in order.
std::vector<std::uint64_t> partitions_of(const Rows& names, Shard shard);
// Selects what partitions_of() reads.
inline constexpr Statement kPartitions = {
    "",
    "select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid "
    "where i.inhparent = 'carillon.log'::regclass"};
// Drops it.
Reply drop_partition(Connection& connection, Shard shard, std::uint64_t index, Deadline deadline);

}  // namespace carillon::cluster::postgres
