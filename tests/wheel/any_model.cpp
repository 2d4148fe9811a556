// Adapts each model to AnyModel.
#include "wheel/any_model.h"

#include "wheel/models.h"

namespace carillon::testing {
namespace {

template <class Model>
class Adapted final : public AnyModel {
  static_assert(TimerSet<Model>);

 public:
  Adapted() = default;
  explicit Adapted(Tick start) : model_(start) {}

  void schedule(TimerNode& node, Tick expiry) override { model_.schedule(node, Moment{expiry}); }
  void schedule(TimerNode& node, Tick expiry, Tick slack) override {
    model_.schedule(node, Moment{expiry}, slack);
  }
  bool cancel(TimerNode& node) noexcept override { return model_.cancel(node); }
  void reschedule(TimerNode& node, Tick expiry) override {
    model_.reschedule(node, Moment{expiry});
  }
  void schedule_after(TimerNode& node, Tick delay) override { model_.schedule_after(node, delay); }
  void schedule_after(TimerNode& node, Tick delay, Tick slack) override {
    model_.schedule_after(node, delay, slack);
  }
  void reschedule_after(TimerNode& node, Tick delay) override {
    model_.reschedule_after(node, delay);
  }
  std::size_t advance(Tick to, NodeCallback on_expire) override {
    return model_.advance(to, on_expire);
  }
  std::size_t advance(Tick to, NodeCallback on_expire, std::size_t limit) override {
    return model_.advance(to, on_expire, limit);
  }
  void clear(NodeCallback sink) override { model_.clear(sink); }

  std::optional<Tick> next_wakeup() const noexcept override { return model_.next_wakeup(); }
  Tick now() const noexcept override { return model_.now(); }
  std::size_t size() const noexcept override { return model_.size(); }
  bool empty() const noexcept override { return model_.empty(); }
  void check_invariants() const override { model_.check_invariants(); }

  void reserve(std::size_t timers) override { model_.reserve(timers); }
  std::size_t allocated_bytes() const noexcept override { return model_.allocated_bytes(); }

 private:
  Model model_;
};

template <class Model>
std::unique_ptr<AnyModel> make(Tick start) {
  if (start == 0) return std::make_unique<Adapted<Model>>();
  return std::make_unique<Adapted<Model>>(start);
}

template <class Model>
ModelKind kind() {
  return {ModelNames::GetName<Model>(0), &make<Model>,
          longest_delay<Model>(),        kMayStopShort<Model>,
          Traits<Model>::kBytesPerTimer, Traits<Model>::kGivesMemoryBack,
          Traits<Model>::kMany};
}

template <class... Each>
ModelKinds kinds(const ::testing::Types<Each...>*) {
  return {kind<Each>()...};
}

}  // namespace

const ModelKinds& models() {
  static const ModelKinds all = kinds(static_cast<Models*>(nullptr));
  return all;
}

const ModelKinds& more_geometries() {
  static const ModelKinds all = kinds(static_cast<MoreGeometries*>(nullptr));
  return all;
}

const ModelKinds& halting_models() {
  static const ModelKinds all = kinds(static_cast<HaltingModels*>(nullptr));
  return all;
}

const ModelKind& huge_page_wheel() {
  static const ModelKind wheel = kind<HugePageWheel>();
  return wheel;
}

}  // namespace carillon::testing
