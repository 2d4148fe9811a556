// Fiber: a function on a stack of its own, which can be left and entered again at any call of
// change().
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

  // The next change to this fiber enters `body`, which must not return. A function that this fiber
  // has not finished is dropped, without destructors.
  void start(void (*body)()) {
    if (stack_ == nullptr) stack_ = std::make_unique<std::byte[]>(kStack);
    ::getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = kStack;
    context_.uc_link = nullptr;
    ::makecontext(&context_, body, 0);
  }

  // Leaves `from`, which is running, and continues in `to`.
  static void change(Fiber& from, Fiber& to) { ::swapcontext(&from.context_, &to.context_); }

 private:
  static constexpr std::size_t kStack = std::size_t{64} * 1024;

  ucontext_t context_{};
  std::unique_ptr<std::byte[]> stack_;
};

}  // namespace carillon::interleaving
