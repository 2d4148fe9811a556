// Reads a body, and says why it cannot be read (bodies.h).
#include "server/net/bodies.h"

#include <exception>

namespace carillon::server {
namespace {

// Calls `read`, which returns an optional string, and turns the exceptions that it throws into a
// Body.
template <class Read>
std::optional<Body> told(Read read) {
  Body body;
  try {
    body.bytes = read();
    if (!body.bytes) return std::nullopt;
  } catch (const queue::StoreDamage& damage) {
    body.error = damage.what();
    body.damaged = true;
  } catch (const std::exception& error) {
    body.error = error.what();
  }
  return body;
}

}  // namespace

Body read_body(const queue::Store& store, BodyName name) {
  return *told([&] { return std::optional(store.body(name.id, name.piece)); });
}

std::optional<Body> body_at_hand(const queue::Store& store, BodyName name) {
  return told([&] { return store.body_at_hand(name.id, name.piece); });
}

}  // namespace carillon::server
