// What a download centre needs of the queue that keeps its downloads: the seam between the load
// (centre.h) and the contestants, Carillon (carillon_queue.cpp) and PostgreSQL
// (postgres_queue.cpp). Both do the same work, each as it is done well there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plan.h"

namespace carillon::bench {

struct Download {
  std::uint64_t number;      // from 0 on, in the order of the puts
  std::uint64_t handle = 0;  // names it in the queue, while it runs
};

// What a queue tells the centre.
class QueueEvents {
 public:
  virtual ~QueueEvents() = default;
  virtual void put_answered(std::uint64_t number) = 0;
  // A download is due and was taken. Returns true if there is a place for it, which it has now.
  // Otherwise the queue gives it back, due at `comes_back_us(number)`.
  virtual bool take_place(std::uint64_t number) = 0;
  virtual std::uint64_t comes_back_us(std::uint64_t number) = 0;
  virtual void begin(Download download) = 0;  // it runs from now on
  virtual void finish_answered(std::uint64_t number) = 0;
};

// The methods do not wait. Every answer is durable. All throw std::runtime_error.
class TaskQueue {
 public:
  virtual ~TaskQueue() = default;
  virtual int epoll() const = 0;  // readable when `on_input` has something to do

  // Returns false if all producers are waiting for an answer. Times are UTC, in microseconds.
  virtual bool put(std::uint64_t number, std::uint64_t now_us, std::uint64_t due_us,
                   std::string_view body) = 0;
  virtual void start() = 0;  // takes downloads from now on
  virtual void finish(Download download) = 0;

  virtual void on_input() = 0;
  // Does what is due, and returns when to call it again, if ever.
  virtual std::optional<std::uint64_t> on_time(std::uint64_t now_us) = 0;
};

std::unique_ptr<TaskQueue> carillon_queue(const Plan& plan, QueueEvents& events);
std::unique_ptr<TaskQueue> postgres_queue(const Plan& plan, QueueEvents& events);

}  // namespace carillon::bench
