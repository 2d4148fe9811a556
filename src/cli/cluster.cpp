// `carillon cluster`: makes the tables of a cluster in PostgreSQL, and shows how it is.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cluster/postgres/postgres_log.h"
#include "cluster/postgres/weaknesses.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;
using cluster::postgres::PostgresLog;
using Status = PostgresLog::Status;

constexpr std::string_view kClusterExamples =
    R"(Several machines can serve the same jobs: each runs carillon serve, one of them
owns the jobs, and if it is lost another takes over. What they agree on is a log
in PostgreSQL, 13 or newer. init makes its tables there, in a schema of their
own, carillon; if they are there already, it changes nothing. status shows who
owns the jobs, and how far the other machines are.

URL is libpq's: postgresql://USER@HOST1,HOST2/DATABASE. Leave the password out,
since others can see what a command was called with: PGPASSWORD or ~/.pgpass may
have it. USER owns the tables, and the servers must connect as this user.

Settings of PostgreSQL by which a confirmed job can be lost are named as
warnings. carillon serve refuses them unless --allow-weak-cluster names them.

Examples:
  carillon cluster init postgresql://carillon@db1,db2/carillon
  carillon serve --listen 10.0.0.1 --cluster postgresql:///carillon
  carillon cluster status postgresql://carillon@db1,db2/carillon
  carillon cluster status postgresql:///carillon --json | jq .owner)";

constexpr std::array<std::string_view, 2> kClusterActions = {"init", "status"};

struct ClusterRequest {
  std::string action;
  std::string url;
  bool json = false;
};

// Long enough to find the primary among a few hosts.
cluster::postgres::Deadline deadline() {
  return cluster::postgres::Clock::now() + std::chrono::seconds(15);
}

template <class Id>
std::string hex(const Id& id) {
  return fmt::format("{:016x}{:016x}", id.high, id.low);
}

void connect(PostgresLog& log) {
  const cluster::postgres::Reply reply = log.connection().connect(deadline());
  if (!reply.done()) throw Failure(reply.why);
}

std::vector<std::string> warn(PostgresLog& log, bool as_json) {
  auto lines = cluster::postgres::weaknesses(log.connection(), {}, deadline());
  for (const std::string& line : lines)
    if (!as_json) remark(fmt::format("carillon cluster: warning: {}", line));
  return lines;
}

json::array array_of(const std::vector<std::string>& lines) {
  return json::array(lines.begin(), lines.end());
}

void init(const ClusterRequest& request, PostgresLog& log) {
  const bool is_new = cluster::postgres::make_schema(log.connection(), deadline());
  const std::string id = hex(log.id());
  const std::vector<std::string> weak = warn(log, request.json);
  const std::string text =
      is_new ? fmt::format(
                   "{0}: the tables of a new cluster are there, with the log {1}\n"
                   "Start a server on each machine:\n"
                   "  carillon serve --listen HOST:11300 --cluster URL\n"
                   "See who owns the jobs:\n"
                   "  carillon cluster status URL",
                   log.place(), id)
             : fmt::format("{}: the tables are there already, with the log {}; nothing was changed",
                           log.place(), id);
  write_result(request.json,
               {{"place", log.place()}, {"log", id}, {"new", is_new}, {"warnings", array_of(weak)}},
               text);
}

// Positions count from the row before the first entry, which nodes without a state have read.
std::uint64_t behind(const Status& status, const cluster::SharedLog::Node& node) {
  return status.last - std::min(status.last, node.read);
}

json::object shown_node(const Status& status, const cluster::SharedLog::Node& node) {
  return {{"address", node.address},
          {"id", fmt::format("{:016x}", node.id)},
          {"owner", status.epoch > 0 && node.owner == status.owner},
          {"behind", behind(status, node)},
          {"unflushed", node.read - std::min(node.read, node.flushed)},
          {"seen_ms", node.silent_for.count()}};
}

std::string node_line(const Status& status, const cluster::SharedLog::Node& node) {
  const bool owns = status.epoch > 0 && node.owner == status.owner;
  return fmt::format("node  {:<24} {:<8} {:>8} behind  seen {} ago\n", node.address,
                     owns ? "owner" : "follower", behind(status, node),
                     server::short_duration(node.silent_for));
}

// Returns the address of the node that owns the jobs, else the random name of the process.
std::string owner_of(const Status& status, const std::vector<cluster::SharedLog::Node>& nodes) {
  if (status.epoch == 0 || status.owner == cluster::Owner{}) return "";
  for (const cluster::SharedLog::Node& node : nodes)
    if (node.owner == status.owner) return node.address;
  return hex(status.owner);
}

void show(const ClusterRequest& request, PostgresLog& log) {
  const Status status = log.status();
  const std::vector<cluster::SharedLog::Node> nodes = log.nodes();
  const std::vector<std::string> weak = warn(log, request.json);
  const std::string owner = owner_of(status, nodes);
  json::object fields = {{"place", log.place()},
                         {"postgresql", status.server_version},
                         {"log", hex(status.log)},
                         {"epoch", status.epoch},
                         {"owner", owner},
                         {"next", status.next},
                         {"entries", status.entries()},
                         {"bytes", status.bytes},
                         {"silent_ms", status.silent_for.count()}};
  if (request.json) {
    json::array all;
    for (const auto& node : nodes) all.push_back(shown_node(status, node));
    fields["nodes"] = std::move(all);
    fields["warnings"] = array_of(weak);
    return write_fields(fields, true);
  }
  if (owner.empty()) fields["owner"] = "nobody yet: start carillon serve --cluster URL";
  fields["bytes"] = size_text(status.bytes);
  fields.erase("silent_ms");
  fields["written"] = server::short_duration(status.silent_for) + " ago";
  write_fields(fields, false);
  std::string lines;
  for (const auto& node : nodes) lines += node_line(status, node);
  write_out(lines);
}

int cluster_command(const ClusterRequest& request) {
  PostgresLog log(request.url);
  connect(log);
  if (request.action == "init")
    init(request, log);
  else
    show(request, log);
  return kSuccess;
}

}  // namespace

void add_cluster(CLI::App& command, int& exit_code) {
  ClusterRequest& request = set_action(command, exit_code, kClusterExamples, cluster_command);
  add_choice(command, "ACTION", request.action, kClusterActions, "init or status").required();
  const auto set_url = [&request](const std::string& text) { request.url = text; };
  add_text(command, "URL", set_url, "Where its log is: postgresql://USER@HOST/DATABASE").required();
  add_flag(command, "--json", request.json, "Print JSON");
}

}  // namespace carillon::cli
