// `gateway load`: connects to a gateway, sends, falls silent, and says whether the gateway dropped
// the right connections.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "load.h"
#include "process.h"

namespace gateway {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

struct Request {
  LoadOptions load;
  bool json = false;
};

void print(const json::object& line) {
  std::printf("%s\n", json::serialize(line).c_str());
  std::fflush(stdout);
}

// Prints the progress of the load each second. With --json it prints only one line, when all are
// connected.
class Progress {
 public:
  Progress(asio::io_context& io, const Load& load, const Request& request)
      : timer_(io), load_(load), request_(request) {}

  void start() {
    timer_.expires_after(request_.json ? std::chrono::milliseconds(100)
                                       : std::chrono::milliseconds(1000));
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      report();
      start();
    });
  }

 private:
  void report() {
    const bool up = load_.is_up();
    if (request_.json) {
      if (up && !was_up_) print({{"event", "up"}, {"connections", load_.connected()}});
    } else {
      std::fprintf(stderr, "%zu of %zu connected, %llu packets, %zu silent ones dropped\n",
                   load_.connected(), request_.load.connections,
                   static_cast<unsigned long long>(load_.packets()), load_.closed());
    }
    was_up_ = up;
  }

  asio::steady_timer timer_;
  const Load& load_;
  const Request& request_;
  bool was_up_ = false;
};

// The value below which this share of the sorted values lies; 0 if `sorted` is empty.
double at(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

double packets_per_second(const LoadReport& report) {
  return report.traffic_seconds > 0 ? static_cast<double>(report.packets) / report.traffic_seconds
                                    : 0;
}

void print_json(const LoadReport& report) {
  print({{"event", "end"},
         {"good", report.good()},
         {"failure", report.failure},
         {"connections", report.connected},
         {"connect_s", report.connect_seconds},
         {"timeout_s", seconds(report.timeout)},
         {"tick_s", seconds(report.tick)},
         {"traffic_s", report.traffic_seconds},
         {"packets", report.packets},
         {"packets_per_s", packets_per_second(report)},
         {"messages", report.sent},
         {"delivered", report.delivered},
         {"absent", report.absent},
         {"lost", report.lost()},
         {"fell_silent", report.silent},
         {"dropped", report.kept.size()},
         {"dropped_alive", report.wrong},
         {"kept_too_long", report.overdue},
         {"starved", report.starved},
         {"kept_least_s", at(report.kept, 0)},
         {"kept_median_s", at(report.kept, 0.5)},
         {"kept_most_s", at(report.kept, 1)},
         {"load_late_ms", 1000 * seconds(report.latest)},
         {"rss_kib", resident_kib()},
         {"cpu_s", cpu_seconds()}});
}

void print_table(const LoadReport& report) {
  if (!report.failure.empty()) {
    std::printf("failed: %s\n", report.failure.c_str());
    return;
  }
  std::printf("connections      %zu, in %.1f s\n", report.connected, report.connect_seconds);
  std::printf("packets          %.0f/s for %.1f s\n", packets_per_second(report),
              report.traffic_seconds);
  std::printf("messages         %llu sent, %llu delivered, %llu to absent ones\n",
              static_cast<unsigned long long>(report.sent),
              static_cast<unsigned long long>(report.delivered),
              static_cast<unsigned long long>(report.absent));
  std::printf("fell silent      %zu, dropped %zu\n", report.silent, report.kept.size());
  std::printf("  after          %.3f .. %.3f s, median %.3f (time-out %.3f, tick %.3f)\n",
              at(report.kept, 0), at(report.kept, 1), at(report.kept, 0.5), seconds(report.timeout),
              seconds(report.tick));
  std::printf("dropped alive    %zu\nkept too long    %zu\n", report.wrong, report.overdue);
  if (report.starved > 0)
    std::printf("not judged       %zu: this process sent for them too late\n", report.starved);
  std::printf("held up          by %.1f ms at the most\n", 1000 * seconds(report.latest));
}

int load(const Request& request) {
  const std::size_t room = raise_descriptor_limit();
  if (request.load.connections > room) {
    std::fprintf(stderr, "gateway: %zu connections; the limit of descriptors has room for %zu.\n%s",
                 request.load.connections, room, how_to_raise_the_limit().c_str());
    return 1;
  }
  asio::io_context io(1);
  Load load(io, request.load);
  Progress progress(io, load, request);
  progress.start();
  load.start();
  io.run();
  request.json ? print_json(load.report()) : print_table(load.report());
  return load.report().good() ? 0 : 1;
}

}  // namespace

void add_load(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "load", "Connect to a gateway on 127.0.0.1, send, fall silent, and judge");
  const auto request = std::make_shared<Request>();
  LoadOptions& options = request->load;
  const auto share = CLI::Range(0.0, 1.0);
  command.add_option("--port", options.port, "The gateway's")->type_name("PORT")->required();
  command.add_option("--connections", options.connections, "How many (1000)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--rate", options.rate, "Packets per second, of all together (100)")
      ->type_name("N")
      ->check(CLI::Range(0.1, 1e6));
  command
      .add_option("--messages", options.messages,
                  "Share of them that are messages to another one (0.5)")
      ->type_name("SHARE")
      ->check(share);
  command
      .add_option("--silent", options.silent, "Share of the connections that fall silent (0.01)")
      ->type_name("SHARE")
      ->check(share);
  command.add_option("--duration", options.duration, "Traffic, once all are connected (60)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86'400.0));
  command
      .add_option("--slack", options.slack,
                  "A drop may be seen this much later than time-out + tick (0.25)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 60.0));
  command
      .add_option("--patience", options.patience, "Give up if not all are connected by then (120)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command
      .add_option("--sources", options.sources,
                  "Addresses 127.0.0.2 .. to connect from, in turn (8)")
      ->type_name("N")
      ->check(CLI::Range(1, 250));
  command
      .add_option("--first-user", options.first_user,
                  "Log in as this number and those that follow (1)")
      ->type_name("USER");
  command.add_option("--seed", options.seed, "Of what is random (1)")->type_name("N");
  command.add_flag(
      "--wait-for-go", options.wait_for_go,
      "Begin the traffic when a line comes on standard input;\nuntil then only keep alive");
  command.add_flag("--json", request->json, "Report as JSON, a line each");
  command.footer(
      "Exit status: 0 if no connection was dropped alive and none kept too long; 1 if one was, or "
      "if it could not\n"
      "be found out; 2 for a wrong option.\n\n" +
      how_to_raise_the_limit());
  command.callback([request, &exit_code] { exit_code = load(*request); });
}

}  // namespace gateway
