// TimerService as a contestant: with its default tick of 1 ms and with shorter ticks, on the timer
// thread and on a pool.
#include <carillon/timer/timer_service.h>

#include "timer/contestant.h"

namespace carillon::bench {
namespace {

template <int kTickMicroseconds, unsigned kThreads>
class CarillonSystem {
 public:
  static bool takes_part(Trial trial) {
    const bool is_default = kTickMicroseconds == 1000 && kThreads == 0;
    return is_default || trial == Trial::kLate || (trial == Trial::kFire && kThreads > 0);
  }

  CarillonSystem(std::size_t slots, unsigned, FireLog& log)
      : log_(log), timers_(options()), handles_(slots) {}

  void schedule(unsigned, std::size_t slot, milliseconds delay) {
    log_.expect(slot, delay);
    handles_[slot] = timers_.schedule_after(delay, [this, slot] { log_.fire(slot); });
  }
  void cancel(unsigned, std::size_t slot) { handles_[slot].cancel(); }
  void finish(unsigned) {}
  void settle() {}  // calls take effect at once

 private:
  static TimerOptions options() {
    TimerOptions options;
    options.tick = std::chrono::microseconds(kTickMicroseconds);
    if (kThreads > 0) options.executor = TimerExecutor::pool(kThreads);
    return options;
  }

  FireLog& log_;
  TimerService timers_;
  std::vector<TimerHandle> handles_;
};

const Registration<CarillonSystem<1000, 0>> kDefault("TimerService", 100);
const Registration<CarillonSystem<1000, 2>> kPool("TimerService, pool of 2", 101);
const Registration<CarillonSystem<100, 0>> kFine("TimerService, tick 100 us", 102);
const Registration<CarillonSystem<10, 0>> kPrecise("TimerService, tick 10 us", 103);

}  // namespace
}  // namespace carillon::bench
