// How a session gets the bodies of jobs without stopping the loop: what takes no wait for the disk
// is read at once, and the rest by somebody else, who reports later.
//
//   if (const auto body = body_at_hand(store, {.id = 7})) ...
//   else bodies.read(client, {.id = 7});      // Session::body_read(body) is called later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "carillon/queue/engine.h"
#include "carillon/queue/store.h"

namespace carillon::server {

// A body, or a piece of a large one (queue::kBodyPiece).
struct BodyName {
  queue::JobId id = 0;  // JobView::body_id
  std::uint32_t piece = 0;
};

// What came of reading it.
struct Body {
  std::optional<std::string> bytes;
  // Why there are no bytes, and whether it will be the same the next time.
  std::string error;
  bool damaged = false;
};

// Reads the body, however long that takes. In any one thread at a time.
Body read_body(const queue::Store& store, BodyName name);
// Returns none if the disk has to be waited for.
std::optional<Body> body_at_hand(const queue::Store& store, BodyName name);

// Reads bodies later, and hands each to its client's session.
class BodyQueue {
 public:
  // REQUIRES: the client waits for no body.
  virtual void read(queue::ClientId client, BodyName name) = 0;
  // The client waits no more.
  virtual void forget(queue::ClientId client) noexcept = 0;

 protected:
  ~BodyQueue() = default;
};

}  // namespace carillon::server
