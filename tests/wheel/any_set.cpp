// Adapts models to AnySet, and pools whose payloads misbehave on demand.
#include "wheel/any_set.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "carillon/wheel/slack.h"
#include "carillon/wheel/timer_pool.h"
#include "wheel/any_model.h"
#include "wheel/models.h"

namespace carillon::testing {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("a pool is broken: ") + what);
}

std::size_t at(int timer) {
  return static_cast<std::size_t>(timer);
}

class ModelSet final : public AnySet {
 public:
  ModelSet(const ModelKind& kind, Tick start) : kind_(kind), model_(kind.make(start)) {}
  ~ModelSet() override {
    auto ignore = [](TimerNode&) {};
    model_->clear(NodeCallback::to(ignore));
  }

  void schedule(int timer, Tick expiry) override { model_->schedule(node(timer), expiry); }
  void schedule(int timer, Tick expiry, Tick slack) override {
    model_->schedule(node(timer), expiry, slack);
  }
  bool cancel(int timer) override { return model_->cancel(node(timer)); }
  void reschedule(int timer, Tick expiry) override { model_->reschedule(node(timer), expiry); }
  std::size_t advance(Tick to, const OnExpire& on_expire, std::size_t limit) override {
    auto by_number = [&](TimerNode& node) { on_expire(static_cast<Timer&>(node).number); };
    return model_->advance(to, NodeCallback::to(by_number), limit);
  }
  void clear(const OnExpire& sink) override {
    auto by_number = [&](TimerNode& node) { sink(static_cast<Timer&>(node).number); };
    model_->clear(NodeCallback::to(by_number));
  }

  bool armed(int timer) const override {
    return at(timer) < timers_.size() && timers_[at(timer)]->armed();
  }
  Tick expiry(int timer) const override { return timers_[at(timer)]->expiry(); }
  std::optional<Tick> next_wakeup() const override { return model_->next_wakeup(); }
  Tick now() const override { return model_->now(); }
  std::size_t size() const override { return model_->size(); }
  void check_invariants() const override { model_->check_invariants(); }
  Tick longest_delay() const override { return kind_.longest_delay; }
  bool may_stop_short() const override { return kind_.may_stop_short; }
  void replace(int timer) override { timers_[at(timer)] = std::make_unique<Timer>(timer); }

 private:
  struct Timer : TimerNode {
    explicit Timer(int timer_number) : number(timer_number) {}
    int number;
  };

  TimerNode& node(int timer) {
    while (timers_.size() <= at(timer))
      timers_.push_back(std::make_unique<Timer>(static_cast<int>(timers_.size())));
    return *timers_[at(timer)];
  }

  const ModelKind& kind_;
  std::unique_ptr<AnyModel> model_;
  std::vector<std::unique_ptr<Timer>> timers_;
};

// Counts the payloads of a pool that are alive, makes their moves throw, and calls on_destroy.
class PooledSet : public AnySet {
 public:
  class Payload {
   public:
    Payload(PooledSet& set, int timer) : set_(set), timer_(timer) { ++set_.alive_; }
    Payload(Payload&& other) : set_(other.set_), timer_(other.timer_) {
      if (std::exchange(set_.move_throws_, false)) throw Bang();
      other.timer_ = kMovedFrom;
    }
    ~Payload() {
      if (timer_ == kMovedFrom) return;
      --set_.alive_;
      if (!set_.quiet_ && set_.on_destroy) set_.on_destroy(timer_);
    }
    int timer() const { return timer_; }

   private:
    static constexpr int kMovedFrom = -1;
    PooledSet& set_;
    int timer_;
  };

  bool next_schedule_throws() override { return move_throws_ = true; }

 protected:
  // While a Quiet lives, payloads do not call on_destroy.
  struct Quiet {
    explicit Quiet(PooledSet& quiet_set)
        : set(quiet_set), before(std::exchange(quiet_set.quiet_, true)) {}
    ~Quiet() { set.quiet_ = before; }
    PooledSet& set;
    bool before;
  };

  // While a Firing lives, one more payload may be alive than timers are pending.
  struct Firing {
    explicit Firing(PooledSet& firing_set) : set(firing_set) { set.firing_ = 1; }
    ~Firing() { set.firing_ = 0; }
    PooledSet& set;
  };

  void check_payloads(std::size_t pending) const {
    require(alive_ >= pending, "a payload has died before its timer");
    require(alive_ <= pending + firing_, "a payload has outlived its timer");
  }

  bool move_throws_ = false;
  bool quiet_ = false;

 private:
  std::size_t alive_ = 0;
  std::size_t firing_ = 0;
};

template <class Model>
class PoolSet final : public PooledSet {
 public:
  explicit PoolSet(Tick start) : pool_(start) {}
  ~PoolSet() override { quiet_ = true; }

  void schedule(int timer, Tick expiry) override {
    const Quiet quiet(*this);
    const TimerId id = pool_.schedule(Moment{expiry}, Payload(*this, timer));
    require(std::find(past_.begin(), past_.end(), id) == past_.end(), "an id came back");
    if (ids_.size() <= at(timer)) ids_.resize(at(timer) + 1);
    past_.push_back(std::exchange(ids_[at(timer)], id));
    if (past_.size() > kPast) past_.pop_front();
  }
  void schedule(int timer, Tick expiry, Tick slack) override {
    const Tick end = std::numeric_limits<Tick>::max();
    const Tick last = longest_delay() > end - now() ? end : now() + longest_delay();
    schedule(timer,
             relaxed_expiry(expiry, expiry <= last ? std::min(slack, last - expiry) : slack));
  }
  bool cancel(int timer) override { return pool_.cancel(id(timer)); }
  void reschedule(int timer, Tick expiry) override {
    if (!pool_.reschedule(id(timer), Moment{expiry})) schedule(timer, expiry);
  }
  std::size_t advance(Tick to, const OnExpire& on_expire, std::size_t limit) override {
    return pool_.advance(to, handing_over(on_expire), limit);
  }
  void clear(const OnExpire& sink) override { pool_.clear(handing_over(sink)); }

  bool armed(int timer) const override { return pool_.contains(id(timer)); }
  Tick expiry(int timer) const override { return pool_.expiry(id(timer)).value(); }
  std::optional<Tick> next_wakeup() const override { return pool_.next_wakeup(); }
  Tick now() const override { return pool_.now(); }
  std::size_t size() const override { return pool_.size(); }
  void check_invariants() const override {
    pool_.check_invariants();
    check_payloads(pool_.size());
    for (const TimerId& old : past_)
      require(!pool_.contains(old), "an id of the past names a timer");
  }
  Tick longest_delay() const override { return testing::longest_delay<Model>(); }
  bool may_stop_short() const override { return kMayStopShort<Model>; }

 private:
  static constexpr std::size_t kPast = 50;             // how many ids of the past are checked
  static constexpr std::uint32_t kLastGeneration = 5;  // small, so that cells are retired

  auto handing_over(const OnExpire& callback) {
    return [this, &callback](TimerId fired, Payload&& payload) {
      const Firing firing(*this);
      const int timer = payload.timer();
      require(id(timer) == fired && !pool_.contains(fired), "another timer fires than its id says");
      require(!pool_.cancel(fired), "the timer that fires could be cancelled");
      callback(timer);
      if (!takes_payloads || timer % 3 != 2) return;
      move_throws_ = timer % 9 == 8;
      const Payload taken(std::move(payload));
    };
  }

  TimerId id(int timer) const { return at(timer) < ids_.size() ? ids_[at(timer)] : TimerId{}; }

  std::vector<TimerId> ids_;
  std::deque<TimerId> past_;
  TimerPool<Payload, Model, kLastGeneration> pool_;
};

AnySetMaker alone(const ModelKind& kind) {
  return {kind.name, [&kind](Tick start) -> std::unique_ptr<AnySet> {
            return std::make_unique<ModelSet>(kind, start);
          }};
}

template <class Model>
AnySetMaker pool_of() {
  return {"TimerPool of " + ModelNames::GetName<Model>(0),
          [](Tick start) -> std::unique_ptr<AnySet> {
            return std::make_unique<PoolSet<Model>>(start);
          }};
}

}  // namespace

const std::vector<AnySetMaker>& all_sets() {
  static const std::vector<AnySetMaker> sets = [] {
    std::vector<AnySetMaker> every;
    for (const ModelKind& kind : models()) every.push_back(alone(kind));
    for (const ModelKind& kind : more_geometries()) every.push_back(alone(kind));
    every.push_back(alone(huge_page_wheel()));
    every.push_back(pool_of<HierarchicalWheel<>>());
    every.push_back(pool_of<HaltingWheel>());
    every.push_back(pool_of<TwelveSlots>());
    every.push_back(pool_of<SmallKafka>());
    every.push_back(pool_of<BinaryHeap>());
    return every;
  }();
  return sets;
}

}  // namespace carillon::testing
