// The server of remote calls (load.h).

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>

#include "carillon/timer/timer_service.h"
#include "channel.h"
#include "load.h"

namespace rpc {
namespace {

namespace asio = boost::asio;

struct Delays {
  explicit Delays(const std::vector<std::string>& a)
      : median(std::stod(a[0])),
        slowest(std::stod(a[2])),
        factor(0, std::stod(a[1])),
        never(std::stod(a[3])),
        random(std::stoul(a[4])) {}

  // Seconds; 0: at once.
  double next() { return median == 0 ? 0 : std::min(slowest, median * factor(random)); }

  const double median, slowest;
  std::lognormal_distribution<double> factor;
  std::bernoulli_distribution never;
  std::mt19937_64 random;
};

class Server {
 public:
  Server(asio::io_context& io, Tcp::socket socket, const Delays& delays)
      : delays_(delays),
        channel_(
            std::move(socket), [this](const Message& request) { on_request(request); },
            [&io] { io.stop(); }) {}

 private:
  void on_request(const Message& request) {
    if (request.id == 0) {
      const std::uint64_t answered = answered_;
      return channel_.send({0, {requests_, answered, requests_ - unanswered_ - answered}});
    }
    ++requests_;
    if (delays_.never(delays_.random)) return static_cast<void>(++unanswered_);
    const double delay = delays_.next();
    if (delay == 0) return answer(request);
    timers_.schedule_after(std::chrono::duration<double>(delay),
                           [this, request] { answer(request); });
  }

  void answer(const Message& reply) {
    channel_.send(reply);
    ++answered_;  // after send(): a status that counts this answer is then sent after it
  }

  Delays delays_;
  std::uint64_t requests_ = 0, unanswered_ = 0;
  std::atomic<std::uint64_t> answered_{0};
  Channel channel_;
  carillon::TimerService timers_{{.name = "rpc-delays"}};  // ends before what its timers use
};

}  // namespace

int serve(const std::vector<std::string>& arguments) {
  asio::io_context io(1);
  Tcp::acceptor acceptor(io, Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::printf("%u\n", unsigned{acceptor.local_endpoint().port()});
  std::fflush(stdout);
  Server server(io, acceptor.accept(), Delays(arguments));
  io.run();
  return 0;
}

}  // namespace rpc

int main(int count, char** words) {
  const std::string command = count > 1 ? words[1] : "";
  const std::vector<std::string> arguments(words + std::min(count, 2), words + count);
  if (command == "serve" && arguments.size() == 5) return rpc::serve(arguments);
  if (command == "load" && arguments.size() == 9) return rpc::load(arguments);
  std::fputs("bench/rpc/run starts this program\n", stderr);
  return 2;
}
