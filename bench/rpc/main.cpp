// rpc, the load program of the timer service: remote calls over TCP, each with a time-out, sent
// again if the reply is late; and a load that counts how they end. (The one-page example is
// examples/rpc.cpp.)
//
//   rpc serve --port 7100                        # in one terminal
//   rpc load --port 7100 --outstanding 100000    # in another
//   run --outstanding 100000                     # compares two designs of time-outs

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Remote calls over TCP with a time-out each (carillon::TimerService, or a scan of all "
      "pending calls as in\n"
      "old Dubbo), retried with back-off; and a load of them that counts what became of each.",
      "rpc");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  rpc serve --port 7100                                       answer in a second or so, or "
      "never\n"
      "  rpc load --port 7100 --outstanding 100000                   call it, 100 000 times at "
      "once\n"
      "  rpc load --port 7100 --outstanding 100000 --deadlines scan  the same with the design of "
      "old\n\n"
      "The script `run`, beside the sources, runs both designs in turn and compares them.");
  int exit_code = 0;
  rpc::add_serve(app, exit_code);
  rpc::add_load(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rpc: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
