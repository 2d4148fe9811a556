// The least that W1 and W2 can cost if timers stand in arrays: the stores of a schedule and of a
// cancel, without a wheel.
//
// A schedule writes the expiry and the address of the entry into the timer, and the timer's address
// into the next entry of its slot. A cancel writes null to both pointers. The slots are those of
// the default wheel's level 1, and large enough for all their timers. Nothing is counted or looked
// up, and no timer can fire.
#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "contestant.h"

namespace carillon::bench {
namespace {

class BareStores {
 public:
  static constexpr bool kHandles = false;

  struct Timer {
    Tick expiry = 0;
    Timer** entry = nullptr;
    Payload payload{};
  };

  // A slot gets one timer of 234 on average. Room for one of 200, and 64 more, is always enough.
  explicit BareStores(std::span<Timer> timers)
      : room_(timers.size() / 200 + 64), entries_(kSlots * room_) {
    empty_slots();
  }

  void schedule(Timer& timer, Tick expiry) {
    Timer** const entry = ends_[expiry / kSlots % kSlots]++;
    *entry = &timer;
    timer.expiry = expiry;
    timer.entry = entry;
  }

  void cancel(Timer& timer) {
    __builtin_prefetch(timer.entry, 1);
    *timer.entry = nullptr;
    timer.entry = nullptr;
  }

  template <class Fire>
  void advance(Tick /*to*/, Fire&& /*fire*/) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (ends_[slot] > begin(slot) + room_)
        throw std::logic_error("a slot of the bare stores was too small");
    }
    empty_slots();
  }

 private:
  static constexpr std::size_t kSlots = 256;

  Timer** begin(std::size_t slot) { return entries_.data() + slot * room_; }
  void empty_slots() {
    for (std::size_t slot = 0; slot < kSlots; ++slot) ends_[slot] = begin(slot);
  }

  std::size_t room_;
  std::vector<Timer*> entries_;
  std::array<Timer**, kSlots> ends_{};
};

struct RegistrationOfW1AndW2 {
  explicit RegistrationOfW1AndW2(Contestant contestant) {
    contestant.trials[kScheduleAndCancel] = schedule_and_cancel<BareStores>;
    enter(std::move(contestant));
  }
};

const RegistrationOfW1AndW2 kRegistration({.name = "(bare stores)", .rank = 303});
const RegistrationOfW1AndW2 kHuge({.name = "(bare stores, huge)", .rank = 304, .huge_pages = true});

}  // namespace
}  // namespace carillon::bench
