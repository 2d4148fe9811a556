// The words for the owner of a key (key_owner.h).
#include "server/api/key_owner.h"

namespace carillon::server {

std::string_view name_of(queue::KeyOwner owner) {
  switch (owner) {
    case queue::KeyOwner::kNone:
      break;
    case queue::KeyOwner::kDelayed:
      return "delayed";
    case queue::KeyOwner::kReady:
      return "ready";
    case queue::KeyOwner::kReserved:
      return "reserved";
    case queue::KeyOwner::kBuried:
      return "buried";
    case queue::KeyOwner::kDead:
      return "dead";
    case queue::KeyOwner::kDone:
      return "done";
  }
  return {};
}

}  // namespace carillon::server
