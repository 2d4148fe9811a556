// Random histories: every model against the Oracle. Callbacks schedule, cancel and re-arm timers,
// destroy objects, and throw.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "carillon/wheel/timer_set.h"
#include "wheel/model_test.h"
#include "wheel/oracle.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

struct Timer : TimerNode {
  explicit Timer(int timer_number) : number(timer_number) {}
  int number;
};

struct Bang : std::runtime_error {
  Bang() : std::runtime_error("thrown by a callback") {}
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  // A number of at most `bits` bits; each number of bits is equally likely.
  std::uint64_t log_uniform(unsigned bits) {
    const std::uint64_t size = below(bits + 1);
    return size == 0 ? 0 : (engine_() | std::uint64_t{1} << 63) >> (64 - size);
  }

 private:
  std::mt19937_64 engine_;
};

Tick saturating_add(Tick tick, Tick delta) {
  return delta > kEndOfTime - tick ? kEndOfTime : tick + delta;
}

// One random history of the model under test.
class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed),
        delay_bits_(static_cast<unsigned>(1 + random_.below(most_delay_bits()))),
        model_(start_tick()) {
    for (int number = 0; number < static_cast<int>(1 + random_.log_uniform(9)); ++number)
      timers_.push_back(std::make_unique<Timer>(number));
    cancels_often_ = random_.one_in(3);
    callback_odds_ = 1 + random_.below(4);
  }

  ~History() {
    model_.clear([](TimerNode&) {});
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      this->step();
      model_.check_invariants();
      if (model_.size() != oracle_.size())
        throw std::runtime_error("size() differs from the number of pending timers");
      oracle_.next_wakeup_is(model_.next_wakeup(), model_.now());
    }
    drain();
  }

 private:
  // How many bits delays have: one more than the model's range has, so that some are refused.
  static unsigned most_delay_bits() {
    return static_cast<unsigned>(
        std::min(64, 65 - std::countl_zero(ModelUnderTest::longest_delay())));
  }

  Tick start_tick() {
    switch (random_.below(4)) {
      case 0:
        return 0;
      case 1:
        return kEndOfTime - random_.log_uniform(20);
      default:
        return random_.log_uniform(64);
    }
  }

  void step() {
    const std::uint64_t choice = random_.below(16);
    if (choice < 10) return touch_a_timer();
    if (choice == 10) return random_.one_in(30) ? clear() : churn();
    advance();
  }

  void touch_a_timer() {
    Timer& timer = *timers_[random_.below(timers_.size())];
    const std::uint64_t choice = random_.below(cancels_often_ ? 12 : 6);
    if (choice >= 5) return random_.one_in(8) ? destroy(timer) : cancel(timer);
    if (choice >= 3) return reschedule(timer);
    if (!timer.armed() || random_.one_in(8)) schedule(timer);
  }

  // Armed or not.
  void destroy(const Timer& timer) {
    const int number = timer.number;
    oracle_.cancelled(number);
    timers_[static_cast<std::size_t>(number)] = std::make_unique<Timer>(number);
  }

  Tick some_expiry() {
    if (random_.one_in(12))
      return model_.now() - std::min<Tick>(model_.now(), random_.log_uniform(10));
    if (random_.one_in(40)) return kEndOfTime;
    return saturating_add(model_.now(), random_.log_uniform(delay_bits_));
  }

  void schedule(Timer& timer) {
    const Tick expiry = some_expiry();
    if (refused(timer, expiry, [&] { model_.schedule(timer, expiry); })) return;
    if (timer.armed()) {
      oracle_.rescheduled(timer.number, expiry, model_.now());
    } else {
      oracle_.scheduled(timer.number, expiry, model_.now());
    }
    model_.schedule(timer, expiry);
    if (!timer.armed() || timer.expiry() != expiry)
      throw std::runtime_error("schedule() left the node wrong");
  }

  void cancel(Timer& timer) {
    const bool was_pending = oracle_.cancelled(timer.number);
    if (model_.cancel(timer) != was_pending) throw std::runtime_error("cancel() answered wrongly");
    if (timer.armed()) throw std::runtime_error("a cancelled timer is armed");
  }

  void reschedule(Timer& timer) {
    const Tick expiry = random_.one_in(3)
                            ? saturating_add(timer.expiry(), random_.log_uniform(delay_bits_))
                            : some_expiry();
    if (refused(timer, expiry, [&] { model_.reschedule(timer, expiry); })) return;
    oracle_.rescheduled(timer.number, expiry, model_.now());
    model_.reschedule(timer, expiry);
    if (!timer.armed() || timer.expiry() != expiry)
      throw std::runtime_error("reschedule() left the node wrong");
  }

  // Returns true if `expiry` is beyond the model's range. Then `call`, which asks for it, must have
  // thrown and changed nothing.
  template <class Call>
  bool refused(Timer& timer, Tick expiry, Call&& call) {
    if (expiry <= model_.now() || expiry - model_.now() <= ModelUnderTest::longest_delay())
      return false;
    const bool was_armed = timer.armed();
    const Tick old_expiry = timer.expiry();
    try {
      call();
    } catch (const std::out_of_range&) {
      if (timer.armed() != was_armed || timer.expiry() != old_expiry)
        throw std::runtime_error("a call that was refused has changed the timer");
      return true;
    }
    throw std::runtime_error("an expiry beyond the range was not refused");
  }

  // Leaves enough null entries behind that the model has to sweep them out.
  void churn() {
    Timer& timer = *timers_[random_.below(timers_.size())];
    for (std::uint64_t times = random_.log_uniform(10); times > 0; --times) {
      cancel(timer);
      schedule(timer);
    }
  }

  void clear() {
    std::size_t cleared = 0;
    model_.clear([&](TimerNode& node) {
      ++cleared;
      if (node.armed() || !oracle_.cancelled(static_cast<Timer&>(node).number))
        throw std::runtime_error("cleared a timer that was not pending");
    });
    if (!model_.empty() || oracle_.size() != 0)
      throw std::runtime_error("clear() left timers behind");
  }

  Tick some_target() {
    const Tick now = model_.now();
    switch (random_.below(6)) {
      case 0:
        return now;
      case 1:
        return saturating_add(now, 1);
      case 2:
        return std::max(now, model_.next_wakeup().value_or(now));
      default:
        return saturating_add(now, random_.log_uniform(delay_bits_));
    }
  }

  void advance() {
    const Tick to = some_target();
    const std::size_t limit = random_.one_in(3) ? random_.log_uniform(6) : kNoLimit;
    advance(to, limit);
  }

  // One call of advance(), with all checks of its outcome.
  void advance(Tick to, std::size_t limit) {
    const std::optional<Tick> wakeup = model_.next_wakeup();
    const Tick before = model_.now();
    fired_ = 0;
    try {
      const std::size_t fired = model_.advance(
          to, [&](TimerNode& node) { on_expire(static_cast<Timer&>(node), to); }, limit);
      if (fired != fired_)
        throw std::runtime_error("advance() returned another number than it fired");
    } catch (const Bang&) {
      limit = 0;  // any number of timers may be left
    }
    if (model_.now() < before || model_.now() > to) throw std::runtime_error("now() went wrong");
    if (fired_ > 0 && (!wakeup || *wakeup > to))
      throw std::runtime_error("a timer fired before next_wakeup()");
    if (limit != 0 && fired_ > limit) throw std::runtime_error("limit was exceeded");
    const bool complete =
        limit == kNoLimit || (fired_ < limit && !ModelUnderTest::kind().may_stop_short);
    if (complete && model_.now() != to)
      throw std::runtime_error("a complete advance() did not arrive");
    if (model_.now() == to && complete) oracle_.stands_at(to, true);
    oracle_.stands_at(model_.now(), false);
  }

  void on_expire(Timer& timer, Tick to) {
    if (timer.armed()) throw std::runtime_error("a timer was armed when it fired");
    if (model_.now() > to) throw std::runtime_error("now() is after the target");
    oracle_.fired(timer.number, model_.now());
    ++fired_;
    if (!draining_ && random_.one_in(callback_odds_)) {
      if (random_.one_in(4))
        timers_[static_cast<std::size_t>(timer.number)] = std::make_unique<Timer>(timer.number);
      for (std::uint64_t actions = random_.below(4); actions > 0; --actions) touch_a_timer();
      if (random_.one_in(10)) churn();
      model_.check_invariants();
      oracle_.next_wakeup_is(model_.next_wakeup(), model_.now());
      if (random_.one_in(20)) throw Bang();
    }
  }

  void drain() {
    draining_ = true;
    for (int wakeups = 0; !model_.empty(); ++wakeups) {
      if (wakeups > 1'000'000) throw std::runtime_error("the wheel does not drain");
      const std::optional<Tick> wakeup = model_.next_wakeup();
      if (!wakeup) throw std::runtime_error("timers are pending and there is no next wake-up");
      advance(*wakeup, kNoLimit);
      model_.check_invariants();
    }
    if (oracle_.size() != 0) throw std::runtime_error("a timer never fired");
  }

  Random random_;
  unsigned delay_bits_;
  ModelUnderTest model_;
  Oracle oracle_;
  std::vector<std::unique_ptr<Timer>> timers_;
  std::size_t fired_ = 0;
  bool cancels_often_ = false;
  std::uint64_t callback_odds_ = 1;
  bool draining_ = false;
};

class Property : public ::testing::Test {
 public:
  static const ModelKinds& kinds() { return models(); }
};

class GeometryProperty : public ::testing::Test {
 public:
  static const ModelKinds& kinds() { return more_geometries(); }
};

void every_random_history_keeps_the_contract() {
  for (const std::uint64_t seed : seeds(150)) {
    SCOPED_TRACE(replay_with(seed));
    History history(seed);
    ASSERT_NO_THROW(history.run(300));
  }
}

MODEL_TEST(Property, EveryRandomHistoryKeepsTheContract) {
  every_random_history_keeps_the_contract();
}

MODEL_TEST(GeometryProperty, EveryRandomHistoryKeepsTheContract) {
  every_random_history_keeps_the_contract();
}

// --- one advance(a + b) is advance(a) and advance(b)

// A wheel whose callbacks do what the seed, the number of the timer and the count of firings tell
// them; and the list of all timers that fired.
struct Replay {
  struct Fired {
    int number;
    Tick now;
    bool operator==(const Fired&) const = default;
  };

  Replay(Tick start, std::uint64_t seed) : model(start), salt(seed) {
    Random random(seed);
    for (int number = 0; number < 60; ++number) {
      timers.push_back(std::make_unique<Timer>(number));
      model.schedule(*timers.back(), expiry_after(start, random.log_uniform(10)));
    }
  }
  ~Replay() {
    model.clear([](TimerNode&) {});
  }

  void advance(Tick to) {
    model.advance(to, [this](TimerNode& node) {
      const int number = static_cast<Timer&>(node).number;
      fired.push_back({number, model.now()});
      Random random(salt * 31 + fired.size() * 1009 + static_cast<std::uint64_t>(number));
      Timer& other = *timers[random.below(timers.size())];
      const Tick now = model.now();
      switch (random.below(5)) {
        case 0:
          return model.reschedule(other, expiry_after(now, random.log_uniform(9)));
        case 1:
          return model.reschedule(other, now - std::min(now, random.below(3)));
        case 2:
          return static_cast<void>(model.cancel(other));
        default:
          return model.reschedule(node, expiry_after(now, random.below(40)));
      }
    });
  }

  static Tick expiry_after(Tick now, Tick delay) {
    return saturating_add(now, ModelUnderTest::within(delay));
  }

  ModelUnderTest model;
  std::uint64_t salt;
  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<Fired> fired;
};

void one_long_advance_fires_what_many_short_ones_fire() {
  for (const std::uint64_t seed : seeds(60)) {
    SCOPED_TRACE(replay_with(seed));
    Random random(seed);
    const Tick start =
        random.one_in(3) ? kEndOfTime - 2000 - random.below(100) : random.log_uniform(63);
    Replay at_once(start, seed);
    Replay in_parts(start, seed);
    at_once.advance(start + 2000);
    for (Tick now = start; now < start + 2000;) {
      now = std::min(start + 2000, saturating_add(now, 1 + random.log_uniform(8)));
      in_parts.advance(now);
    }
    ASSERT_GE(at_once.fired.size(), 30U);
    ASSERT_TRUE(at_once.fired == in_parts.fired);
  }
}

MODEL_TEST(Property, OneLongAdvanceFiresWhatManyShortOnesFire) {
  one_long_advance_fires_what_many_short_ones_fire();
}

MODEL_TEST(GeometryProperty, OneLongAdvanceFiresWhatManyShortOnesFire) {
  one_long_advance_fires_what_many_short_ones_fire();
}

}  // namespace
}  // namespace carillon::testing
