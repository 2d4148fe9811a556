// BodyThread: the thread that reads the bodies that are not at hand, so that a slow disk stops only
// the clients that wait for it.
//
//   BodyThread bodies(store, [&] { post(loop, [&] { hand_out(bodies.take()); }); });
//   bodies.read(client, {.id = 7});
//
// Bodies are read one after the other, in the order in which they are asked for. A store that finds
// successive ids reads several bodies at once (body_reader.h), so the next ones are mostly at
// hand when they are asked for.
//
// Thread safety: one thread makes, owns and destroys a BodyThread and calls its methods; the
// destructor waits for the read that is under way, and drops the others.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "server/net/bodies.h"

namespace carillon::server {

class BodyThread final : public BodyQueue {
 public:
  struct Read {
    queue::ClientId client;
    BodyName name;
    Body body;
  };

  // `on_done` is called by the thread when there is something to take() again. It must not throw.
  // `store` must outlive the BodyThread.
  BodyThread(const queue::Store& store, std::function<void()> on_done);
  virtual ~BodyThread();
  BodyThread(const BodyThread&) = delete;
  BodyThread& operator=(const BodyThread&) = delete;

  // BodyQueue
  void read(queue::ClientId client, BodyName name) override;
  void forget(queue::ClientId client) noexcept override;

  // Returns what was read since the last call, in the order of the reads.
  std::list<Read> take() noexcept;

 private:
  void run();

  const queue::Store& store_;
  const std::function<void()> on_done_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_:
  std::list<Read> asked_;
  std::list<Read> done_;
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace carillon::server
