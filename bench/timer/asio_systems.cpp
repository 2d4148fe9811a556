// Asio's steady_timer as a contestant, used in three ways:
//   one io_context   One thread runs the loop. Producers call their timers directly, which Asio
//                    allows, and compete for the lock of the loop.
//   posted           One thread runs the loop. Producers post their calls to it, so that no other
//                    thread touches timers.
//   a loop each      Each producer has an io_context of its own and is its only thread. It polls
//                    after every 64 pairs, because cancelled waits complete there.
// Each timer is constructed once and used again, as that of a connection is: this is the cheaper
// way.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <memory>
#include <thread>

#include "timer/contestant.h"

namespace carillon::bench {
namespace {

namespace asio = boost::asio;

// The timers of one loop.
class Timers {
 public:
  Timers(std::size_t slots, asio::io_context& loop, FireLog& log) : log_(log) {
    timers_.reserve(slots);
    for (std::size_t slot = 0; slot < slots; ++slot) timers_.emplace_back(loop);
  }

  void start(std::size_t slot, milliseconds delay) {
    log_.expect(slot, delay);
    timers_[slot].expires_after(delay);
    timers_[slot].async_wait([this, slot](const boost::system::error_code& cancelled) {
      if (!cancelled) log_.fire(slot);
    });
  }
  void cancel(std::size_t slot) { timers_[slot].cancel(); }

 private:
  FireLog& log_;
  std::vector<asio::steady_timer> timers_;
};

// An io_context with a thread that runs it.
class Loop {
 public:
  asio::io_context& context() { return context_; }

  // Returns when the loop has run everything that was posted before, and what became ready by it.
  void settle() {
    for (int i = 0; i < 2; ++i) {
      std::promise<void> done;
      asio::post(context_, [&] { done.set_value(); });
      done.get_future().wait();
    }
  }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(context_);
  std::thread thread_{[this] { context_.run(); }};
};

class OneContext {
 public:
  static bool takes_part(Trial) { return true; }

  OneContext(std::size_t slots, unsigned, FireLog& log) : timers_(slots, loop_.context(), log) {}
  void schedule(unsigned, std::size_t slot, milliseconds delay) { timers_.start(slot, delay); }
  void cancel(unsigned, std::size_t slot) { timers_.cancel(slot); }
  void finish(unsigned) {}
  void settle() { loop_.settle(); }

 private:
  Loop loop_;
  Timers timers_;
};

class Posted {
 public:
  static bool takes_part(Trial trial) { return trial == Trial::kPairs; }

  Posted(std::size_t slots, unsigned, FireLog& log) : timers_(slots, loop_.context(), log) {}
  void schedule(unsigned, std::size_t slot, milliseconds delay) {
    asio::post(loop_.context(), [this, slot, delay] { timers_.start(slot, delay); });
  }
  void cancel(unsigned, std::size_t slot) {
    asio::post(loop_.context(), [this, slot] { timers_.cancel(slot); });
  }
  void finish(unsigned) { loop_.settle(); }
  void settle() { loop_.settle(); }

 private:
  Loop loop_;
  Timers timers_;
};

class LoopEach {
 public:
  static bool takes_part(Trial trial) { return trial == Trial::kPairs; }

  LoopEach(std::size_t slots, unsigned producers, FireLog& log) : slots_(slots / producers) {
    for (unsigned producer = 0; producer < producers; ++producer)
      producers_.push_back(std::make_unique<Producer>(slots_, log));
  }
  void schedule(unsigned producer, std::size_t slot, milliseconds delay) {
    producers_[producer]->timers.start(slot % slots_, delay);
  }
  void cancel(unsigned producer, std::size_t slot) {
    Producer& own = *producers_[producer];
    own.timers.cancel(slot % slots_);
    if (++own.cancelled % 64 == 0) finish(producer);
  }
  void finish(unsigned producer) {
    producers_[producer]->context.restart();
    producers_[producer]->context.poll();
  }
  void settle() {}

 private:
  struct alignas(64) Producer {
    Producer(std::size_t slots, FireLog& log) : timers(slots, context, log) {}

    asio::io_context context{1};
    Timers timers;
    unsigned cancelled = 0;
  };

  std::size_t slots_;
  std::vector<std::unique_ptr<Producer>> producers_;
};

const Registration<OneContext> kOne("Asio, one io_context", 310);
const Registration<Posted> kPosted("Asio, posted", 311);
const Registration<LoopEach> kEach("Asio, a loop each", 312);

}  // namespace
}  // namespace carillon::bench
