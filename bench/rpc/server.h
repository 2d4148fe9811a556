// The server: answers each echo request after a delay, or never. The delays have a log-normal
// distribution, which has a long tail.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <unordered_set>

#include "carillon/timer/timer_service.h"
#include "channel.h"

namespace rpc {

struct ServerOptions {
  std::uint16_t port = 0;  // on 127.0.0.1; 0: the system chooses one
  double median = 1;       // seconds; 0: no delays
  double spread = 0.6;     // standard deviation of the delay's logarithm
  double slowest = 8;      // seconds; longer delays are cut to this
  double never = 0.02;     // share of the requests that are never answered
  std::uint64_t seed = 1;
};

// Thread safety: none. The one thread that runs `io` does everything, except that the thread of
// timers_ sends delayed answers.
class Server {
 public:
  // Listens at once. Throws boost::system::system_error if the port is taken.
  Server(boost::asio::io_context& io, const ServerOptions& options);

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  struct Session;

  void accept();
  void add(Tcp::socket socket);
  void on_request(const std::shared_ptr<Session>& session, std::uint64_t id, std::string_view rest);
  void echo(const std::shared_ptr<Session>& session, std::uint64_t id, std::string_view payload);

  const ServerOptions options_;
  std::mt19937_64 random_;
  std::lognormal_distribution<double> delay_;  // as a multiple of the median
  std::bernoulli_distribution never_;
  Tcp::acceptor acceptor_;
  std::unordered_set<std::shared_ptr<Session>> sessions_;
  carillon::TimerService timers_;
};

}  // namespace rpc
