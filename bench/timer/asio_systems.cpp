// Asio's steady_timer as a contestant, in three uses:
//   one io_context   a thread runs it; producers work on their timers themselves, as Asio allows, and meet at its lock
//   posted           the same, but they post what is to be done, so that all timers are the loop's alone
//   a loop each      each producer has an io_context and is its only thread: no other thread is involved. It polls
//                    after every 64 pairs, for what it has cancelled completes there
// A timer is made once and used again, as a connection's is: that is the cheaper way.
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

// A loop with a thread.
class Loop {
 public:
  asio::io_context& context() { return context_; }

  // What was posted before, and what became ready by that, is done.
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
