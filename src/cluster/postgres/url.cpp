// What the connection takes from its URL.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/start_error.h"
#include "cluster/postgres/connection.h"
#include "cluster/postgres/libpq.h"

namespace carillon::cluster::postgres {
namespace {

// The value is not shown: a part of a password may be anywhere in a URL that is wrong.
[[noreturn]] void refuse(const std::string& why) {
  throw base::StartError("the cluster's URL " + why +
                         "; write postgresql://USER@HOST/DATABASE or "
                         "postgresql://USER@HOST1,HOST2/DATABASE");
}

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = list.find(',');
    parts.emplace_back(list.substr(0, end));
    if (end == std::string_view::npos) return parts;
    list.remove_prefix(end + 1);
  }
}

bool is_port(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string place_of(const std::string& host, const std::string& port,
                     const std::string& database) {
  const std::vector<std::string> hosts = parts_of(host);
  const std::vector<std::string> ports = parts_of(port);
  std::string place;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) place += ',';
    place += hosts[i].empty() ? "the local socket" : hosts[i];
    const std::string& own = ports[std::min(i, ports.size() - 1)];
    if (!own.empty()) place += ":" + own;
  }
  return place + (database.empty() ? "" : "/" + database);
}

}  // namespace

void Connection::read_url() {
  if (!url_.starts_with("postgresql://") && !url_.starts_with("postgres://"))
    refuse("does not begin with postgresql://");
  const Libpq& pq = libpq();
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      pq.parse_url(url_.c_str(), nullptr), pq.free_options);
  if (options == nullptr) refuse("has an unknown option, or a % without two hexadecimal digits");
  std::string host;
  std::string port;
  std::string database;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string_view name = option->keyword;
    if (name == "host") host = option->val;
    if (name == "hostaddr" && host.empty()) host = option->val;
    if (name == "port") port = option->val;
    if (name == "dbname") database = option->val;
    if (name == "password" || name == "sslpassword") secrets_.emplace(option->val);
  }
  for (const std::string& one : parts_of(port))
    if (!is_port(one)) refuse("has a port that is no number");
  if ((host + database).find('@') != std::string::npos)
    refuse("has an @ or a / in its password, which must be %40 or %2F");
  place_ = place_of(host, port, database);
}

}  // namespace carillon::cluster::postgres
