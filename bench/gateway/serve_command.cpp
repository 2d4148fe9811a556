// `gateway serve`: runs the gateway until a signal comes, or for the seconds of --for.

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "gateway.h"
#include "process.h"

namespace gateway {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

struct Request {
  std::uint16_t port = 0;
  double timeout = 30;
  double tick = 0.1;
  double run_for = 0;
  double every = 1;
  bool json = false;
};

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// Prints what the gateway does, every `every` seconds.
class Reporter {
 public:
  Reporter(asio::io_context& io, const Gateway& gateway, const Request& request)
      : timer_(io), gateway_(gateway), request_(request) {}

  void start() {
    if (request_.every <= 0) return;
    timer_.expires_after(milliseconds_of(request_.every));
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      report("status");
      start();
    });
  }

  void report(const char* event) {
    const GatewayStats& stats = gateway_.stats();
    const auto now = Clock::now();
    const double cpu = cpu_seconds();
    const double elapsed = seconds(now - last_);
    const double rate = static_cast<double>(stats.packets - last_packets_) / elapsed;
    const double cpu_percent = 100 * (cpu - last_cpu_) / elapsed;
    last_ = now;
    last_packets_ = stats.packets;
    last_cpu_ = cpu;
    if (request_.json) {
      print(json::object{{"event", event},
                         {"connections", gateway_.connections()},
                         {"peak", stats.peak},
                         {"accepted", stats.accepted},
                         {"dropped", stats.dropped},
                         {"ended", stats.ended},
                         {"packets", stats.packets},
                         {"packets_per_s", rate},
                         {"forwarded", stats.forwarded},
                         {"reprieved", stats.reprieved},
                         {"wakeups", stats.wakeups},
                         {"latest_ms", 1000 * seconds(stats.latest)},
                         {"rss_kib", resident_kib()},
                         {"tracker_kib", gateway_.tracker_bytes() / 1024},
                         {"cpu_percent", cpu_percent},
                         {"cpu_s", cpu}});
    } else {
      std::printf("%zu connections, %.0f packets/s, %llu dropped; %zu MiB, CPU %.1f %%\n",
                  gateway_.connections(), rate, static_cast<unsigned long long>(stats.dropped),
                  resident_kib() / 1024, cpu_percent);
    }
    std::fflush(stdout);
  }

  static void print(const json::object& line) {
    std::printf("%s\n", json::serialize(line).c_str());
  }

 private:
  asio::steady_timer timer_;
  const Gateway& gateway_;
  const Request& request_;
  Clock::time_point last_ = Clock::now();
  std::uint64_t last_packets_ = 0;
  double last_cpu_ = cpu_seconds();
};

void serve(const Request& request) {
  const std::size_t room = raise_descriptor_limit();
  asio::io_context io(1);
  Gateway gateway(io, {.port = request.port,
                       .timeout = milliseconds_of(request.timeout),
                       .tick = milliseconds_of(request.tick)});
  if (request.json) {
    Reporter::print({{"event", "listening"},
                     {"port", gateway.port()},
                     {"room", room},
                     {"rss_kib", resident_kib()}});
  } else {
    std::printf(
        "listening on 127.0.0.1:%u, time-out %g s; the limit of descriptors has room for %zu "
        "connections.\n%s",
        gateway.port(), request.timeout, room, how_to_raise_the_limit().c_str());
  }
  std::fflush(stdout);

  Reporter reporter(io, gateway, request);
  reporter.start();
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const boost::system::error_code&, int) { io.stop(); });
  if (request.run_for > 0) {
    io.run_for(milliseconds_of(request.run_for));
  } else {
    io.run();
  }
  reporter.report("end");
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("serve", "Run the gateway on 127.0.0.1");
  const auto request = std::make_shared<Request>();
  command.add_option("--port", request->port, "Port; 0 takes any free one, and says which (0)")
      ->type_name("PORT");
  command
      .add_option("--timeout", request->timeout,
                  "Drop clients that send nothing for this long (30)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.01, 4'000'000.0));
  command.add_option("--tick", request->tick, "Those of one tick are dropped together (0.1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 3600.0));
  command.add_option("--for", request->run_for, "Stop by itself after this time (0: by Ctrl-C)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 4'000'000.0));
  command.add_option("--every", request->every, "Report once in this time; 0 is never (1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command.add_flag("--json", request->json, "Report as JSON, a line each");
  command.footer(how_to_raise_the_limit());
  command.callback([request, &exit_code] {
    serve(*request);
    exit_code = 0;
  });
}

}  // namespace gateway
