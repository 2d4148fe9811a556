// ConnectionList: the connections that want one thing of the event loop in its turn, each once, in
// the order they came.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "server/connection.h"

namespace carillon::server {

class ConnectionList {
 public:
  // `listed` is where a connection notes that it stands in this list.
  explicit ConnectionList(bool Connection::*listed) : listed_(listed) {}

  bool empty() const { return listed_now_.empty(); }
  std::size_t size() const { return listed_now_.size(); }

  // O(1); no effect if it stands there already.
  void add(Connection& connection) {
    if (std::exchange(connection.*listed_, true)) return;
    listed_now_.push_back(connection.shared_from_this());
  }

  // Takes all of them out and calls each(connection), which may add it, or others, anew. REQUIRES:
  // not called by `each`.
  template <class Each>
  void take_all(Each each) {
    taken_.swap(listed_now_);
    for (const std::shared_ptr<Connection>& connection : taken_) {
      (*connection).*listed_ = false;
      each(*connection);
    }
    taken_.clear();
  }

 private:
  bool Connection::*const listed_;
  std::vector<std::shared_ptr<Connection>> listed_now_;
  std::vector<std::shared_ptr<Connection>>
      taken_;  // empty but in take_all(): its memory is used again
};

}  // namespace carillon::server
