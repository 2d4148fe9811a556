// Decodes bytes into calls, and checks the set's answers against the Oracle.
#include "wheel/byte_history.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "wheel/oracle.h"

namespace carillon::testing {
namespace {

constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

Tick saturating_add(Tick tick, Tick delta) {
  return delta > kEndOfTime - tick ? kEndOfTime : tick + delta;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// The stream of bytes; behind its end there are zeros.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  unsigned take() {
    if (rest_.empty()) return 0;
    const unsigned byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

class ByteHistory {
 public:
  ByteHistory(std::span<const std::uint8_t> bytes, const AnySetMaker& maker)
      : bytes_(bytes),
        set_(maker.make(start_tick())),
        timers_(1 + static_cast<int>(bytes_.take())) {
    set_->takes_payloads = true;
    set_->on_destroy = [this](int) { on_destroy(); };
  }
  ~ByteHistory() { set_->on_destroy = nullptr; }
  ByteHistory(const ByteHistory&) = delete;
  ByteHistory& operator=(const ByteHistory&) = delete;

  void run() {
    while (!bytes_.empty()) {
      step();
      check();
    }
    drain();
  }

 private:
  // --- what the bytes mean

  Tick start_tick() {
    const unsigned kind = bytes_.take();
    const unsigned detail = bytes_.take();
    switch (kind % 4) {
      case 0:
        return detail;
      case 1:
        return kEndOfTime - (Tick{detail} << kind / 16);
      case 2:
        return (Tick{1} << detail % 64) - 1 - kind / 4;
      default:
        return Tick{0x9e3779b97f4a7c15} * (detail + 1);
    }
  }

  int some_timer() { return static_cast<int>(bytes_.take()) % timers_; }

  // A power of two or a number near one, a multiple of a power of two, or a delay that ends at the
  // boundary of a slot or near it.
  Tick some_delay() {
    const unsigned kind = bytes_.take();
    const unsigned bits = static_cast<unsigned>(std::bit_width(set_->longest_delay()));
    const unsigned shift = kind / 4 % std::min(bits + 1, 64U);
    const Tick now = set_->now();
    switch (kind % 4) {
      case 0:
        return Tick{1} << shift;
      case 1:
        return (Tick{1} << shift) + bytes_.take() % 8 - 4;
      case 2:
        return Tick{bytes_.take()} << (shift < 8 ? 0 : shift - 8);
      default:
        return (((now >> shift) + 1) << shift) - now + bytes_.take() % 3 - 1;
    }
  }

  Tick some_expiry() {
    const Tick now = set_->now();
    switch (bytes_.take() % 16) {
      case 12:
        return now;
      case 13:
        return now - std::min<Tick>(now, bytes_.take());
      case 14:
        return kEndOfTime;
      case 15:
        return set_->next_wakeup().value_or(now);
      default:
        return saturating_add(now, some_delay());
    }
  }

  void step() {
    switch (bytes_.take() % 16) {
      case 0:
        return schedule_burst();
      case 1:
        return churn(some_timer());
      case 2:
        return clear();
      case 3:
        return schedule_and_throw(some_timer());
      case 4:
        return advance(set_->now(), kNoLimit);
      case 5:
        return advance(saturating_add(set_->now(), 1), kNoLimit);
      case 6:
        return advance(std::max(set_->now(), set_->next_wakeup().value_or(0)), kNoLimit);
      case 7:
        return advance(saturating_add(set_->now(), some_delay()), kNoLimit);
      case 8:
      case 9: {
        const std::size_t limit = bytes_.take() % 32;
        return advance(saturating_add(set_->now(), some_delay()), limit);
      }
      default:
        return touch_a_timer();
    }
  }

  void touch_a_timer() {
    const unsigned how = bytes_.take();
    const int timer = some_timer();
    switch (how % 8) {
      case 0:
      case 1:
        return cancel(timer);
      case 2:
        return reschedule(timer, some_expiry());
      case 3:  // for later
        return reschedule(
            timer,
            saturating_add(set_->armed(timer) ? set_->expiry(timer) : set_->now(), some_delay()));
      case 4:  // for earlier
        return reschedule(timer, set_->armed(timer) ? middle(set_->expiry(timer)) : some_expiry());
      case 5:
        if (!set_->armed(timer)) schedule_with_slack(timer);
        return;
      default:
        if (!set_->armed(timer)) schedule(timer, some_expiry());
    }
  }

  Tick middle(Tick expiry) const {
    const Tick now = set_->now();
    return expiry <= now ? expiry / 2 : now + (expiry - now) / 2;
  }

  // --- the calls

  void schedule(int timer, Tick expiry) {
    if (refused(timer, expiry, [&] { set_->schedule(timer, expiry); })) return;
    oracle_.scheduled(timer, expiry, set_->now());
    set_->schedule(timer, expiry);
    require(set_->armed(timer) && set_->expiry(timer) == expiry, "schedule() left the timer wrong");
  }

  void schedule_with_slack(int timer) {
    const Tick expiry = some_expiry();
    const Tick slack = some_delay();
    if (refused(timer, expiry, [&] { set_->schedule(timer, expiry, slack); })) return;
    set_->schedule(timer, expiry, slack);
    const Tick chosen = set_->expiry(timer);
    require(chosen >= expiry && chosen - expiry <= slack, "a timer will not fire within its slack");
    oracle_.scheduled(timer, chosen, set_->now());
  }

  void schedule_burst() {
    const unsigned count = bytes_.take();
    const Tick expiry = some_expiry();
    int timer = some_timer();
    for (unsigned i = 0; i < count; ++i, timer = (timer + 1) % timers_) {
      if (!set_->armed(timer)) schedule(timer, expiry);
    }
  }

  void schedule_and_throw(int timer) {
    if (set_->armed(timer)) return;
    const Tick expiry = some_expiry();
    if (!set_->next_schedule_throws()) return schedule(timer, expiry);
    try {
      set_->schedule(timer, expiry);
    } catch (const Bang&) {
      return require(!set_->armed(timer), "schedule() failed, and armed the timer");
    }
    throw std::runtime_error("a payload that throws was taken");
  }

  void reschedule(int timer, Tick expiry) {
    if (refused(timer, expiry, [&] { set_->reschedule(timer, expiry); })) return;
    oracle_.rescheduled(timer, expiry, set_->now());
    set_->reschedule(timer, expiry);
    require(set_->armed(timer) && set_->expiry(timer) == expiry,
            "reschedule() left the timer wrong");
  }

  // Returns true if `expiry` is beyond the range. Then `call`, which asks for it, must have thrown
  // and changed nothing.
  template <class Call>
  bool refused(int timer, Tick expiry, Call&& call) {
    if (expiry <= set_->now() || expiry - set_->now() <= set_->longest_delay()) return false;
    const auto state = [&] {
      return std::pair(set_->armed(timer), set_->armed(timer) ? set_->expiry(timer) : 0);
    };
    const auto before = state();
    try {
      call();
    } catch (const std::out_of_range&) {
      require(before == state(), "a call that was refused has changed the timer");
      return true;
    }
    throw std::runtime_error("an expiry beyond the range was not refused");
  }

  void cancel(int timer) {
    const bool was_pending = oracle_.cancelled(timer);
    require(set_->cancel(timer) == was_pending, "cancel() answered wrongly");
  }

  // Leaves null entries behind, until the model has to sweep them out.
  void churn(int timer) {
    const Tick expiry = some_expiry();
    for (unsigned times = bytes_.take(); times > 0; --times) {
      cancel(timer);
      if (!set_->armed(timer)) schedule(timer, expiry);
    }
  }

  void clear() {
    for (bool done = false; !done;) {
      try {
        set_->clear([this](int timer) {
          require(oracle_.cancelled(timer) && !set_->armed(timer),
                  "cleared a timer that was not pending");
          if (bytes_.take() % 16 == 15) throw Bang();
        });
        done = true;
      } catch (const Bang&) {
        check();
      }
    }
  }

  // One call of advance(), with all checks of its outcome.
  void advance(Tick to, std::size_t limit) {
    const std::optional<Tick> wakeup = set_->next_wakeup();
    const Tick before = set_->now();
    const std::size_t at_most = limit;
    fired_ = 0;
    try {
      const std::size_t fired = set_->advance(
          to, [this, to](int timer) { on_expire(timer, to); }, limit);
      require(fired == fired_, "advance() returned another number than it fired");
    } catch (const Bang&) {
      limit = 0;  // any number of timers may be left
    }
    const Tick now = set_->now();
    require(now >= before && now <= to, "now() went wrong");
    require(fired_ == 0 || (wakeup && *wakeup <= to), "a timer fired before next_wakeup()");
    require(fired_ <= at_most, "advance() exceeded its limit");
    const bool complete = limit == kNoLimit || (fired_ < limit && !set_->may_stop_short());
    require(!complete || now == to, "a complete advance() did not arrive");
    oracle_.stands_at(now, complete);
  }

  void on_expire(int timer, Tick to) {
    require(!set_->armed(timer), "a timer is armed when it fires");
    require(set_->now() <= to, "now() is after the target");
    oracle_.fired(timer, set_->now());
    ++fired_;
    const unsigned acts = bytes_.take();
    if (acts % 16 == 1) set_->replace(timer);
    for (unsigned left = acts % 4; left > 0; --left) touch_a_timer();
    if (acts % 16 == 2) churn(timer);
    if (acts % 8 == 3) fail_to_nest();
    if (acts != 0) check();
    if (acts % 32 == 31) throw Bang();
  }

  void fail_to_nest() {
    for (const Tick target : {set_->now(), saturating_add(set_->now(), 1), kEndOfTime}) {
      require(is_refused([&] { set_->advance(target, [](int) {}); }),
              "a nested advance() was not refused");
    }
    require(is_refused([&] { set_->clear([](int) {}); }), "a nested clear() was not refused");
  }

  template <class Call>
  static bool is_refused(Call&& call) {
    try {
      call();
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  }

  // A destructor must not throw: an exception in it is kept for the next check().
  void on_destroy() {
    if (bytes_.take() % 4 != 3) return;
    try {
      touch_a_timer();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void check() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    set_->check_invariants();
    require(set_->size() == oracle_.size(), "size() differs from the number of pending timers");
    oracle_.next_wakeup_is(set_->next_wakeup(), set_->now());
  }

  // Advances from wake-up to wake-up, until no timer is left.
  void drain() {
    for (int calls = 0; !set_->empty(); ++calls) {
      require(calls < 1'000'000, "the set does not drain");
      advance(set_->next_wakeup().value(), kNoLimit);
      check();
    }
    require(oracle_.size() == 0, "a timer never fired");
  }

  Bytes bytes_;
  std::unique_ptr<AnySet> set_;
  int timers_;
  Oracle oracle_;
  std::size_t fired_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void play(std::span<const std::uint8_t> bytes, const AnySetMaker& maker) {
  ByteHistory(bytes, maker).run();
}

}  // namespace carillon::testing
