// AnyModel: every model of models.h behind one class. Tests that use TimerNodes are compiled once,
// against this class, and run over all models. The models are compiled once too, in any_model.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon::testing {

// Refers to a callback of any type, which must outlive it. Allocates nothing, so that tests of
// memory count only the allocations of the model.
struct NodeCallback {
  void* callback;
  void (*invoke)(void* callback, TimerNode& node);

  template <class Callback>
  static NodeCallback to(Callback& callback) {
    return {&callback,
            [](void* object, TimerNode& node) { (*static_cast<Callback*>(object))(node); }};
  }

  void operator()(TimerNode& node) const { invoke(callback, node); }
};

// The calls of TimerSet (timer_set.h), with its contracts, and the other calls that all models
// have.
class AnyModel {
 public:
  AnyModel() = default;
  AnyModel(const AnyModel&) = delete;
  AnyModel& operator=(const AnyModel&) = delete;
  virtual ~AnyModel() = default;

  virtual void schedule(TimerNode& node, Tick expiry) = 0;
  virtual void schedule(TimerNode& node, Tick expiry, Tick slack) = 0;
  virtual bool cancel(TimerNode& node) noexcept = 0;
  virtual void reschedule(TimerNode& node, Tick expiry) = 0;
  virtual void schedule_after(TimerNode& node, Tick delay) = 0;
  virtual void schedule_after(TimerNode& node, Tick delay, Tick slack) = 0;
  virtual void reschedule_after(TimerNode& node, Tick delay) = 0;
  virtual std::size_t advance(Tick to, NodeCallback on_expire) = 0;
  virtual std::size_t advance(Tick to, NodeCallback on_expire, std::size_t limit) = 0;
  virtual void clear(NodeCallback sink) = 0;

  virtual std::optional<Tick> next_wakeup() const noexcept = 0;
  virtual Tick now() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;
  virtual bool empty() const noexcept = 0;
  virtual void check_invariants() const = 0;

  virtual void reserve(std::size_t timers) = 0;
  virtual std::size_t allocated_bytes() const noexcept = 0;
};

// One of the models: how to make it, and its traits in models.h.
struct ModelKind {
  std::string name;
  std::unique_ptr<AnyModel> (*make)(Tick start);
  Tick longest_delay;
  bool may_stop_short;
  double bytes_per_timer;
  bool gives_memory_back;
  std::size_t many;
};

using ModelKinds = std::vector<ModelKind>;

const ModelKinds& models();           // Models of models.h
const ModelKinds& more_geometries();  // MoreGeometries
const ModelKinds& halting_models();   // HaltingModels
const ModelKind& huge_page_wheel();   // HugePageWheel

}  // namespace carillon::testing
