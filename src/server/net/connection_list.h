// ConnectionList: the connections that want the same thing of the event loop in its turn (to be
// flushed, or read), each once, in the order in which they asked.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "carillon/require.h"
#include "server/net/connection.h"

namespace carillon::server {

class ConnectionList {
 public:
  // `listed` is the member of Connection that is true while the connection is in this list.
  explicit ConnectionList(bool Connection::*listed) : listed_(listed) {}

  bool empty() const { return connections_.empty(); }
  std::size_t size() const { return connections_.size(); }

  // Does nothing if the connection is in the list already. O(1).
  void add(Connection& connection) {
    if (std::exchange(connection.*listed_, true)) return;
    connections_.push_back(connection.shared_from_this());
  }

  // Takes the first connection out. REQUIRES: there is one.
  std::shared_ptr<Connection> take_first() {
    CARILLON_REQUIRE(!connections_.empty());
    std::shared_ptr<Connection> first = std::move(connections_.front());
    connections_.pop_front();
    (*first).*listed_ = false;
    return first;
  }

 private:
  bool Connection::*const listed_;
  std::deque<std::shared_ptr<Connection>> connections_;
};

}  // namespace carillon::server
