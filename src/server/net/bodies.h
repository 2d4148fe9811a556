// How a session gets the bodies of jobs without stopping the loop: bodies that need no wait for the
// disk are read at once. Another thread reads the rest, and reports later.
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

// The result of reading it.
struct Body {
  std::optional<std::string> bytes;
  // Why there are no bytes, and whether the next try will fail the same way.
  std::string error;
  bool damaged = false;
};

// Reads the body, however long that takes. REQUIRES: one thread at a time.
Body read_body(const queue::Store& store, BodyName name);
// Returns none if the read would have to wait for the disk.
std::optional<Body> body_at_hand(const queue::Store& store, BodyName name);

// Reads bodies later, and hands each to its client's session.
class BodyQueue {
 public:
  // REQUIRES: the client waits for no body.
  virtual void read(queue::ClientId client, BodyName name) = 0;
  // The client has stopped waiting.
  virtual void forget(queue::ClientId client) noexcept = 0;

 protected:
  ~BodyQueue() = default;
};

}  // namespace carillon::server
