// MODEL_TEST: one test over many models. It makes a test per model, named Suite/Model.Name as with
// TYPED_TEST. Its body is compiled once; it tests a ModelUnderTest.
//
//   class Contract : public ::testing::Test {
//    public:
//     static const ModelKinds& kinds() { return models(); }
//   };
//
//   MODEL_TEST(Contract, ANewSetIsEmpty) {
//     ModelUnderTest wheel;
//     EXPECT_TRUE(wheel.empty());
//   }
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "carillon/wheel/timer_set.h"
#include "wheel/any_model.h"

namespace carillon::testing {

// A set of the model that the running test is about.
class ModelUnderTest {
 public:
  explicit ModelUnderTest(Tick start = 0) : model_(kind().make(start)) {}

  static const ModelKind& kind() { return *chosen; }
  static Tick longest_delay() { return kind().longest_delay; }

  // Returns `delay`, but at most the longest delay that the model takes.
  static Tick within(Tick delay) { return std::min(delay, longest_delay()); }

  void schedule(TimerNode& node, Tick expiry) { model_->schedule(node, expiry); }
  void schedule(TimerNode& node, Tick expiry, Tick slack) { model_->schedule(node, expiry, slack); }
  bool cancel(TimerNode& node) noexcept { return model_->cancel(node); }
  void reschedule(TimerNode& node, Tick expiry) { model_->reschedule(node, expiry); }
  void schedule_after(TimerNode& node, Tick delay) { model_->schedule_after(node, delay); }
  void schedule_after(TimerNode& node, Tick delay, Tick slack) {
    model_->schedule_after(node, delay, slack);
  }
  void reschedule_after(TimerNode& node, Tick delay) { model_->reschedule_after(node, delay); }
  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire) {
    auto call = [&on_expire](TimerNode& node) { on_expire(node); };
    return model_->advance(to, NodeCallback::to(call));
  }
  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit) {
    auto call = [&on_expire](TimerNode& node) { on_expire(node); };
    return model_->advance(to, NodeCallback::to(call), limit);
  }
  template <class Sink>
  void clear(Sink&& sink) {
    auto call = [&sink](TimerNode& node) { sink(node); };
    model_->clear(NodeCallback::to(call));
  }

  std::optional<Tick> next_wakeup() const noexcept { return model_->next_wakeup(); }
  Moment now() const noexcept { return Moment{model_->now()}; }
  std::size_t size() const noexcept { return model_->size(); }
  bool empty() const noexcept { return model_->empty(); }
  void check_invariants() const { model_->check_invariants(); }

  void reserve(std::size_t timers) { model_->reserve(timers); }
  std::size_t allocated_bytes() const noexcept { return model_->allocated_bytes(); }

  // Says which model to test, until the next call.
  static void choose(const ModelKind& kind) { chosen = &kind; }

 private:
  inline static const ModelKind* chosen = nullptr;
  std::unique_ptr<AnyModel> model_;
};

static_assert(TimerSet<ModelUnderTest>);

// Registers the tests Suite/Model.Name of all models that the fixture names.
template <class Fixture>
bool register_model_tests(const char* suite, const char* name, const char* file, int line,
                          Fixture* (*make)()) {
  for (const ModelKind& kind : Fixture::kinds()) {
    ::testing::RegisterTest((std::string(suite) + "/" + kind.name).c_str(), name, kind.name.c_str(),
                            nullptr, file, line, [&kind, make]() -> Fixture* {
                              ModelUnderTest::choose(kind);
                              return make();
                            });
  }
  return true;
}

}  // namespace carillon::testing

// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): named like TYPED_TEST
#define MODEL_TEST(Suite, Name)                                                             \
  class Suite##_##Name final : public Suite {                                               \
    void TestBody() override;                                                               \
  };                                                                                        \
  [[maybe_unused]] const bool Suite##_##Name##_is_registered = register_model_tests<Suite>( \
      #Suite, #Name, __FILE__, __LINE__, []() -> Suite* { return new Suite##_##Name; });    \
  void Suite##_##Name::TestBody()
// NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)
