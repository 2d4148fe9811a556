// Fiber: a function on a stack of its own, left in the middle and entered again by hand.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <memory>

namespace carillon::interleaving {

class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it enters `body`, which must not return. What it was in the middle of is
  // dropped, without destructors.
  void start(void (*body)()) {
    if (stack_ == nullptr) stack_ = std::make_unique<std::byte[]>(kStack);
    ::getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = kStack;
    context_.uc_link = nullptr;
    ::makecontext(&context_, body, 0);
  }

  // Leaves `from`, which is running, for `to`.
  static void change(Fiber& from, Fiber& to) { ::swapcontext(&from.context_, &to.context_); }

 private:
  static constexpr std::size_t kStack = std::size_t{64} * 1024;

  ucontext_t context_{};
  std::unique_ptr<std::byte[]> stack_;
};

}  // namespace carillon::interleaving
