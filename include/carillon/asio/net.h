// Which Asio the headers of this folder are for: Boost's, or, if CARILLON_STANDALONE_ASIO is
// defined, the standalone one.
//
//   target_compile_definitions(app PRIVATE CARILLON_STANDALONE_ASIO)
//
// The types for the two are different types. So one program may use both, in different source
// files. Versions: Boost 1.81 and later, standalone Asio 1.22.1 and later. Only Asio's documented
// interfaces are used.
#pragma once

#if defined(CARILLON_STANDALONE_ASIO)
#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/recycling_allocator.hpp>
#include <asio/strand.hpp>
#include <asio/system_error.hpp>
#include <asio/system_executor.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/version.hpp>
#define CARILLON_ASIO_NAMES with_standalone_asio
static_assert(ASIO_VERSION >= 102201, "standalone Asio 1.22.1 or later is needed");
#else
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/version.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#define CARILLON_ASIO_NAMES with_boost_asio
static_assert(BOOST_ASIO_VERSION >= 102600, "Boost 1.81 or later is needed");
#endif

namespace carillon {
inline namespace CARILLON_ASIO_NAMES {
namespace asio_detail {

#if defined(CARILLON_STANDALONE_ASIO)
namespace net = ::asio;
using Error = ::asio::error_code;
using SystemError = ::asio::system_error;
#else
namespace net = ::boost::asio;
using Error = ::boost::system::error_code;
using SystemError = ::boost::system::system_error;
#endif

// Returns true if a request to cancel is one that a timer follows. Timers have no side effects, so
// they follow all kinds.
inline bool asks_to_cancel(net::cancellation_type_t type) noexcept {
  using Type = net::cancellation_type;
  return (type & (Type::terminal | Type::partial | Type::total)) != Type::none;
}

}  // namespace asio_detail
}  // namespace CARILLON_ASIO_NAMES
}  // namespace carillon
