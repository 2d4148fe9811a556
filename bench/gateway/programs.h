// The two programs behind the gateway's figures in docs/idle.md. bench/gateway/run starts them, and
// says what their arguments mean. (The one-page example is examples/gateway.cpp.)
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>
#include <vector>

namespace gateway {

using Clock = std::chrono::steady_clock;
using Tcp = boost::asio::ip::tcp;
// Its executor type is that of io_context, which makes it smaller than a socket with any executor.
using Socket = boost::asio::basic_stream_socket<Tcp, boost::asio::io_context::executor_type>;

inline double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}
inline Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Sends back all that its connections send, until SIGTERM. Drops those that send nothing for a
// time-out.
int serve(const std::vector<std::string>& arguments);

// Connects to a gateway, sends, lets some connections fall silent, and judges who is dropped when.
int load(const std::vector<std::string>& arguments);

}  // namespace gateway
