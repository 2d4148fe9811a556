// Decides which connection is taken, and which one is closed (kept_connections.h).
#include "server/push/kept_connections.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "carillon/require.h"

namespace carillon::server::push {

using std::chrono::steady_clock;

KeptConnections::KeptConnections(boost::asio::io_context& io, MemoryPool& pool, std::size_t most,
                                 std::chrono::milliseconds longest)
    : timer_(io), pool_(pool), memory_(pool), most_(most), longest_(longest) {}

KeptConnections::~KeptConnections() {
  close_all();
}

std::shared_ptr<PostConnection> KeptConnections::take(const TargetUrl& url) {
  for (;;) {
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Kept& kept) {
      return kept.connection->target() == url;
    });
    if (found == kept_.rend()) return nullptr;
    auto connection = std::move(found->connection);
    kept_.erase(std::prev(found.base()));
    count();
    if (connection->is_quiet()) return connection;
    connection->abort();
  }
}

void KeptConnections::keep(std::shared_ptr<PostConnection> connection) {
  CARILLON_REQUIRE(!connection->is_at_work());
  if (!connection->is_open()) return;
  if (most_ == 0 || !pool_.has(kBytesOfOne)) return connection->abort();
  const TargetUrl& url = connection->target();
  const auto of_this = std::count_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.connection->target() == url;
  });
  if (static_cast<std::size_t>(of_this) >= kMostOfOne) {
    close_oldest(&url);
  } else if (kept_.size() >= most_) {
    close_oldest(nullptr);
  }
  kept_.push_back({.connection = std::move(connection), .since = steady_clock::now()});
  count();
  if (kept_.size() == 1) close_old();
}

void KeptConnections::close(const TargetUrl& url) {
  std::erase_if(kept_, [&](const Kept& kept) {
    if (kept.connection->target() != url) return false;
    kept.connection->abort();
    return true;
  });
  count();
}

void KeptConnections::close_all() {
  for (const Kept& kept : kept_) kept.connection->abort();
  kept_.clear();
  timer_.cancel();
  count();
}

// `url` may be null: then the oldest of all URLs.
void KeptConnections::close_oldest(const TargetUrl* url) {
  const auto oldest = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return url == nullptr || kept.connection->target() == *url;
  });
  oldest->connection->abort();
  kept_.erase(oldest);
}

// Closes connections that were kept too long, and sets the timer for the next one.
void KeptConnections::close_old() {
  const auto now = steady_clock::now();
  while (!kept_.empty() && now - kept_.front().since >= longest_) close_oldest(nullptr);
  count();
  if (kept_.empty()) return;
  timer_.expires_at(kept_.front().since + longest_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) close_old();
  });
}

void KeptConnections::count() {
  memory_.set(kept_.size() * kBytesOfOne);
}

}  // namespace carillon::server::push
