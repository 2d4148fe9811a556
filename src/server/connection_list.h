// ConnectionList: the connections that want the same thing of the event loop in its turn (to be
// processed, flushed, or read), each once, in the order in which they asked.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "server/connection.h"

namespace carillon::server {

class ConnectionList {
 public:
  // `listed` is the member of Connection that is true while the connection is in this list.
  explicit ConnectionList(bool Connection::*listed) : listed_(listed) {}

  bool empty() const { return connections_.empty(); }
  std::size_t size() const { return connections_.size(); }

  // No effect if the connection is in the list already. O(1).
  void add(Connection& connection) {
    if (std::exchange(connection.*listed_, true)) return;
    connections_.push_back(connection.shared_from_this());
  }

  // Takes all connections out and calls each(connection), which may add that one, or others, anew.
  // REQUIRES: `each` does not call take_all().
  template <class Each>
  void take_all(Each each) {
    taken_.swap(connections_);
    for (const std::shared_ptr<Connection>& connection : taken_) {
      (*connection).*listed_ = false;
      each(*connection);
    }
    taken_.clear();
  }

 private:
  bool Connection::*const listed_;
  std::vector<std::shared_ptr<Connection>> connections_;
  // Empty except during take_all(); a member so that its memory is used again.
  std::vector<std::shared_ptr<Connection>> taken_;
};

}  // namespace carillon::server
