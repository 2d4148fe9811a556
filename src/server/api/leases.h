// Jobs that a token holds instead of a connection: the leases of HTTP.
//
//   const queue::ClientId worker = leases.begin(asker, "mail", "host-7", now);
//   engine.reserve(worker, now, wait);                // its Delivery: for leases.asker_of(worker)
//   reply(leases.token({worker, job}));
//   leases.answered(worker, now);                     // it stays as long as it holds a job
//   ...
//   if (const auto lease = leases.find(token)) engine.touch(lease->worker, now, lease->job);
//
// Each request that reserves is a client of the engine of its own. It reserves nothing later. So a
// token names a client and a job, and is good as long as the client holds the job: when the lease
// is over, the job may be held by any other client, and never by this one again.
//
// Tokens hold as long as the process: a restart ends all leases, and makes their jobs ready. Each
// worker has a secret of 128 random bits in its tokens, so that nobody can end leases by guessing.
//
// Thread safety: none; they belong to the thread that owns the engine.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "server/net/memory_pool.h"

namespace carillon::server {

struct Lease {
  queue::ClientId worker = 0;
  queue::JobId job = 0;
};

class Leases {
 public:
  // The engine and the pool must outlive this.
  Leases(queue::Engine& engine, MemoryPool& memory)
      : engine_(engine), pool_(memory), memory_(memory) {}

  // Returns a new client that watches the tube. Throws queue::OverLimit if there is no memory for
  // it, or for the tube, or if the system gives no random bytes; leases take at most half of the
  // memory. `name` is its name in the stories of jobs.
  queue::ClientId begin(queue::ClientId asker, std::string_view tube, std::string_view name,
                        queue::Now now);
  // Returns the client that a Delivery is for: the one that asked, or `client` itself.
  queue::ClientId asker_of(queue::ClientId client) const;
  // The worker's asker is answered: from now on its tokens are good. It goes when it holds no job.
  void answered(queue::ClientId worker, queue::Now now);
  // Takes some workers away whose leases are over by their time. To be called once a turn.
  void look(queue::Now now);
  // The worker goes, and its jobs are ready again.
  void give_up(queue::ClientId worker, queue::Now now);

  // REQUIRES: the worker is there.
  std::string token(Lease lease) const;
  // Returns none if the token is none that was given, or its worker has gone. If there is one, the
  // lease may be over all the same: the engine says so.
  std::optional<Lease> find(std::string_view token) const;

  // Workers that wait or hold jobs, and some whose leases are over.
  std::size_t size() const { return workers_.size(); }

 private:
  using Secret = std::array<unsigned char, 16>;
  struct Worker {
    queue::ClientId asker = 0;  // by whom it was asked for; 0: it is answered
    Secret secret{};
  };

  queue::Engine& engine_;
  MemoryPool& pool_;
  MemoryPool::Share memory_;
  std::map<queue::ClientId, Worker> workers_;
  queue::ClientId looked_at_ = 0;  // by look()
};

}  // namespace carillon::server
