// Remembers which client has the checkpoint of the store: one client at a time, from its command
// `checkpoint` until its connection closes. So a client that dies leaves nothing behind.
//
//   CheckpointLease lease(&store);
//   lease.begin(client);                                       // the client waits
//   while (lease.pending()) { ... if (const auto result = lease.poll()) answer(*result); }
//   lease.end(client);                                         // the client has disconnected
//
// Thread safety: none; it belongs to the thread that owns the engine.
#pragma once

#include <optional>
#include <string>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"

namespace carillon::server {

// What a client that waits for a checkpoint gets.
struct CheckpointResult {
  queue::ClientId client = 0;
  std::optional<queue::Checkpoint> checkpoint;
  std::string error;  // why there is no checkpoint
};

class CheckpointLease {
 public:
  enum class Begun {
    kBegun,
    kBusy,      // a client has the checkpoint, perhaps this one
    kInMemory,  // there is no store on disk
  };

  // `store` must outlive the lease; null: jobs are kept in memory.
  explicit CheckpointLease(queue::DiskStore* store) : store_(store) {}

  // Begins to make a checkpoint for the client.
  Begun begin(queue::ClientId client);

  // Returns true while a checkpoint is being made. Call poll() every few milliseconds then.
  bool pending() const { return pending_; }

  // Returns, once, the result for which the client waits. After an error no client has the
  // checkpoint.
  std::optional<CheckpointResult> poll();

  // Removes the client's checkpoint, made or not. Does nothing for other clients.
  void end(queue::ClientId client);

  // Returns true if the client has the checkpoint or waits for it.
  bool held_by(queue::ClientId client) const { return holder_ == client; }

 private:
  queue::DiskStore* store_;
  std::optional<queue::ClientId> holder_;
  bool pending_ = false;
};

}  // namespace carillon::server
