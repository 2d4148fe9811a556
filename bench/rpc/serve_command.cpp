// `rpc serve`: runs the server until a signal comes, or for the seconds of --for.

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "server.h"

namespace rpc {
namespace {

struct Request {
  ServerOptions server;
  double run_for = 0;
};

void serve(const Request& request) {
  boost::asio::io_context io(1);
  Server server(io, request.server);
  std::printf("listening on 127.0.0.1:%u\n", server.port());
  std::fflush(stdout);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const boost::system::error_code&, int) { io.stop(); });
  if (request.run_for > 0) {
    io.run_for(std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(request.run_for)));
  } else {
    io.run();
  }
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("serve", "Run the server on 127.0.0.1");
  const auto request = std::make_shared<Request>();
  ServerOptions& options = request->server;
  command.add_option("--port", options.port, "Port; 0 takes any free one, and says which (0)")
      ->type_name("PORT");
  command
      .add_option("--median", options.median,
                  "Half of the answers take longer; 0: none takes any time (1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command
      .add_option("--spread", options.spread, "Standard deviation of the delay's logarithm (0.6)")
      ->type_name("N")
      ->check(CLI::Range(0.0, 10.0));
  command.add_option("--slowest", options.slowest, "No answer takes longer (8)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0));
  command
      .add_option("--never", options.never, "Share of the requests that are never answered (0.02)")
      ->type_name("SHARE")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", options.seed, "Seed of the random numbers (1)")->type_name("N");
  command.add_option("--for", request->run_for, "Stop by itself after this time (0: by Ctrl-C)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 4'000'000.0));
  command.callback([request, &exit_code] {
    serve(*request);
    exit_code = 0;
  });
}

}  // namespace rpc
