// Asio for the tests that are compiled for Boost's and for the standalone one.
#pragma once

#include "carillon/asio/net.h"

#if defined(CARILLON_STANDALONE_ASIO)
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/system_timer.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#define CARILLON_ASIO_IS(version) (ASIO_VERSION >= (version))
#else
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#define CARILLON_ASIO_IS(version) (BOOST_ASIO_VERSION >= (version))
#endif

namespace carillon::testing {
namespace net = asio_detail::net;
using error_code = asio_detail::Error;  // NOLINT(readability-identifier-naming): Asio's name
}  // namespace carillon::testing
