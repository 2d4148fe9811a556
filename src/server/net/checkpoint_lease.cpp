// CheckpointLease (checkpoint_lease.h).
#include "server/net/checkpoint_lease.h"

#include <spdlog/spdlog.h>

namespace carillon::server {

CheckpointLease::Begun CheckpointLease::begin(queue::ClientId client) {
  if (store_ == nullptr) return Begun::kInMemory;
  if (holder_) return Begun::kBusy;
  store_->begin_checkpoint();
  holder_ = client;
  pending_ = true;
  return Begun::kBegun;
}

std::optional<CheckpointResult> CheckpointLease::poll() {
  if (!pending_) return std::nullopt;
  CheckpointResult result{.client = *holder_, .checkpoint = std::nullopt, .error = {}};
  try {
    result.checkpoint = store_->poll_checkpoint();
    if (!result.checkpoint) return std::nullopt;
    spdlog::info("a client has a checkpoint of the data, up to change {}: {}",
                 result.checkpoint->number, result.checkpoint->path);
  } catch (const queue::StoreError& error) {
    result.error = error.what();
    holder_.reset();
  }
  pending_ = false;
  return result;
}

void CheckpointLease::end(queue::ClientId client) {
  if (!held_by(client)) return;
  if (!pending_) spdlog::info("the client of the checkpoint has gone; it is being removed");
  store_->release_checkpoint();
  holder_.reset();
  pending_ = false;
}

}  // namespace carillon::server
