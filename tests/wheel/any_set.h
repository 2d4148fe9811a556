// AnySet: every model of models.h, alone and under a TimerPool, behind one class. For tests that
// are too large to compile once per model.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon::testing {

// The exception that tests throw from callbacks, and that payloads throw when they are moved.
struct Bang : std::runtime_error {
  Bang() : std::runtime_error("thrown by the test") {}
};

// The calls of TimerSet (timer_set.h), with its contracts. Timers are known by number, from 0.
// Their objects live as long as the set.
class AnySet {
 public:
  using OnExpire = std::function<void(int)>;

  AnySet() = default;
  AnySet(const AnySet&) = delete;
  AnySet& operator=(const AnySet&) = delete;
  virtual ~AnySet() = default;

  virtual void schedule(int timer, Tick expiry) = 0;
  virtual void schedule(int timer, Tick expiry, Tick slack) = 0;
  virtual bool cancel(int timer) = 0;
  virtual void reschedule(int timer, Tick expiry) = 0;
  virtual std::size_t advance(Tick to, const OnExpire& on_expire, std::size_t limit = kNoLimit) = 0;
  virtual void clear(const OnExpire& sink) = 0;

  virtual bool armed(int timer) const = 0;
  virtual Tick expiry(int timer) const = 0;  // REQUIRES: it is armed
  virtual std::optional<Tick> next_wakeup() const = 0;
  virtual Tick now() const = 0;
  virtual std::size_t size() const = 0;
  virtual void check_invariants() const = 0;
  bool empty() const { return size() == 0; }

  virtual Tick longest_delay() const = 0;

  // Returns true if a call with a limit may end before it has fired that many timers.
  virtual bool may_stop_short() const = 0;

  // Destroys the object of a timer that is not armed, and makes a new one.
  virtual void replace(int /*timer*/) {}

  // Makes the next schedule() of a pool throw Bang, and returns true. Returns false if this is no
  // pool.
  virtual bool next_schedule_throws() { return false; }

  // Pools only. If true, the callback moves the payload of every third timer out of the pool, and
  // every third of these moves throws Bang.
  bool takes_payloads = false;

  // Pools only. The destructor of a pending timer's payload calls it.
  std::function<void(int)> on_destroy;
};

struct AnySetMaker {
  std::string name;
  std::function<std::unique_ptr<AnySet>(Tick start)> make;
};

// All models of models.h, and pools of some of them.
const std::vector<AnySetMaker>& all_sets();

}  // namespace carillon::testing
