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
// Tokens hold as long as the process: a restart ends all leases, and makes their jobs ready.
//
// Thread safety: none; they belong to the thread that owns the engine.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "server/memory_pool.h"

namespace carillon::server {

struct Lease {
  queue::ClientId worker = 0;
  queue::JobId job = 0;
};

class Leases {
 public:
  // `process` is a word that no other process has. The engine and the pool must outlive this.
  Leases(queue::Engine& engine, MemoryPool& memory, std::string process)
      : engine_(engine), pool_(memory), memory_(memory), process_(std::move(process)) {}

  // Returns a new client that watches the tube. Throws queue::OverLimit if there is no memory for
  // it, or for the tube; leases take at most half of the memory. `name` is its name in the stories
  // of jobs.
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

  std::string token(Lease lease) const;
  // Returns none if the token is none that was given, or its worker has gone. If there is one, the
  // lease may be over all the same: the engine says so.
  std::optional<Lease> find(std::string_view token) const;

  // Workers that wait or hold jobs, and some whose leases are over.
  std::size_t size() const { return workers_.size(); }

 private:
  queue::Engine& engine_;
  MemoryPool& pool_;
  MemoryPool::Share memory_;
  std::string process_;
  // By whom they were asked for; 0: they are answered.
  std::map<queue::ClientId, queue::ClientId> workers_;
  queue::ClientId looked_at_ = 0;  // by look()
};

}  // namespace carillon::server
