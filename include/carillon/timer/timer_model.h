// TimerModel: any TimerSet behind one interface, so that a service can be told which to use.
//
//   carillon::TimerService timers({.model = carillon::timer_model<carillon::HierarchicalWheel<>>});
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The operations of a TimerSet (wheel/timer_set.h) that a service needs, with the contracts told
// there.
class TimerModel {
 public:
  virtual ~TimerModel() = default;

  virtual void place(TimerNode& node, Tick expiry) = 0;  // TimerSet::reschedule: armed or not
  virtual bool cancel(TimerNode& node) noexcept = 0;
  virtual std::size_t advance(Tick to, void (*on_expire)(void* context, TimerNode& node),
                              void* context, std::size_t limit) = 0;
  virtual std::optional<Tick> next_wakeup() const noexcept = 0;
  virtual Tick now() const noexcept = 0;
  virtual void clear(void (*sink)(void* context, TimerNode& node), void* context) = 0;
};

using TimerModelFactory = std::unique_ptr<TimerModel> (*)(Tick start_tick);

namespace detail {

template <TimerSet Model>
class ModelOf final : public TimerModel {
 public:
  explicit ModelOf(Tick start_tick) : model_(start_tick) {}

  void place(TimerNode& node, Tick expiry) override { model_.reschedule(node, expiry); }
  bool cancel(TimerNode& node) noexcept override { return model_.cancel(node); }
  std::size_t advance(Tick to, void (*on_expire)(void*, TimerNode&), void* context,
                      std::size_t limit) override {
    return model_.advance(
        to, [=](TimerNode& node) { on_expire(context, node); }, limit);
  }
  std::optional<Tick> next_wakeup() const noexcept override { return model_.next_wakeup(); }
  Tick now() const noexcept override { return model_.now(); }
  void clear(void (*sink)(void*, TimerNode&), void* context) override {
    model_.clear([=](TimerNode& node) { sink(context, node); });
  }

 private:
  Model model_;
};

}  // namespace detail

// Makes a Model whose now() is `start_tick`.
template <TimerSet Model>
std::unique_ptr<TimerModel> timer_model(Tick start_tick) {
  return std::make_unique<detail::ModelOf<Model>>(start_tick);
}

}  // namespace carillon
