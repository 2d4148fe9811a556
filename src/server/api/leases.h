// The leases of HTTP: a token holds the job, not a connection, and not the process.
//
//   const queue::ClientId worker = leases.begin(asker, "mail", "host-7", now);
//   engine.reserve(worker, now, wait);            // a Delivery goes to leases.asker_of(worker)
//   leases.lease(worker, now, jobs, time);        // from now on a restart does not end them
//   reply(leases.token({worker, job}));
//   leases.answered(worker, now);                 // the worker stays as long as it holds a job
//   ...
//   if (const auto lease = leases.find(token)) engine.remove(lease->worker, now, lease->job);
//
// Each request that reserves becomes a client of the engine, which reserves nothing after that. A
// token names a job, and has the secret of the worker, 128 random bits that nobody can guess. It is
// good as long as the worker with this secret holds the job. When the lease is over, another worker
// may get the job, but never this one again. After a restart the engine has a worker for each
// secret, so the tokens stay good.
//
// Thread safety: none; they belong to the thread that owns the engine.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
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
  Leases(queue::Engine& engine, MemoryPool& memory);

  // Returns a new client of the engine that watches the tube. Throws queue::OverLimit if there is
  // no memory for the client or the tube, or if the system gives no random bytes; leases take at
  // most half of the memory. The stories of jobs show `name`.
  queue::ClientId begin(queue::ClientId asker, std::string_view tube, std::string_view name,
                        queue::Now now);
  // Returns the client to which a Delivery for this one goes: the client that sent the request, or
  // `client` itself.
  queue::ClientId asker_of(queue::ClientId client) const;
  // Makes leases of the jobs that the worker holds, or lets them begin anew (Engine::lease()).
  // Throws queue::StoreError. REQUIRES: the worker exists.
  queue::Leased lease(queue::ClientId worker, queue::Now now, std::span<const queue::JobId> jobs,
                      std::optional<queue::Millis> time);
  // To be called when the request of the worker is answered: from now on its tokens are good.
  // Removes the worker when it holds no job.
  void answered(queue::ClientId worker, queue::Now now);
  // Removes some workers whose leases are over. To be called once a turn.
  void look(queue::Now now);
  // Removes the worker and makes its jobs ready again.
  void give_up(queue::ClientId worker, queue::Now now);

  // REQUIRES: the worker exists.
  std::string token(Lease lease) const;
  // Returns the lease of this token; none if it is over. What has come to its time since the engine
  // advanced last is not over yet.
  std::optional<Lease> find(std::string_view token) const;
  // Returns the lease of the job; none if it has no lease, in the same way.
  std::optional<Lease> lease_of(queue::JobId job) const;

  // Counts workers that wait or hold jobs, and some whose leases are over.
  std::size_t size() const { return workers_.size(); }

 private:
  struct Worker {
    queue::ClientId asker = 0;  // the client that sent the request; 0 after its answer
    std::string secret;         // in hexadecimal digits
  };

  queue::Engine& engine_;
  MemoryPool& pool_;
  MemoryPool::Share memory_;
  std::map<queue::ClientId, Worker> workers_;
  queue::ClientId looked_at_ = 0;  // the worker at which look() has ended
};

}  // namespace carillon::server
