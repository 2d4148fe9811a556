// Concepts of coroutines: Awaitable and Operation, and the type of their result.
#pragma once

#include <concepts>
#include <coroutine>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace carillon::detail {

// The object on which `co_await std::forward<A>(awaitable)` calls await_ready(), await_suspend()
// and await_resume().
template <class A>
decltype(auto) awaiter_of(A&& awaitable) {
  if constexpr (requires { std::forward<A>(awaitable).operator co_await(); }) {
    return std::forward<A>(awaitable).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<A>(awaitable)); }) {
    return operator co_await(std::forward<A>(awaitable));
  } else {
    return std::forward<A>(awaitable);
  }
}

// What any coroutine can await. (asio::awaitable, for one, can be awaited by its own kind alone.)
template <class A>
concept Awaitable = requires(A&& awaitable, bool ready, std::coroutine_handle<> caller) {
  ready = awaiter_of(std::forward<A>(awaitable)).await_ready();
  awaiter_of(std::forward<A>(awaitable)).await_suspend(caller);
  awaiter_of(std::forward<A>(awaitable)).await_resume();
};

// A callable that takes a stop token and returns an awaitable. (clang-format 14 would take the < of
// std::invocable for an operator.)
// clang-format off
template <class F>
concept Operation = std::invocable<std::decay_t<F>&, std::stop_token> &&
                    Awaitable<std::invoke_result_t<std::decay_t<F>&, std::stop_token>>;
// clang-format on

template <class What>
struct AwaitedBy {
  using Type = What;
};
template <Operation What>
struct AwaitedBy<What> {
  using Type = std::invoke_result_t<What&, std::stop_token>;
};

// The type of the result of co_await on the awaitable, or on what the operation returns: an object
// type, void or a reference.
template <class What>
using ResultOf =
    decltype(awaiter_of(std::declval<typename AwaitedBy<What>::Type>()).await_resume());

}  // namespace carillon::detail
