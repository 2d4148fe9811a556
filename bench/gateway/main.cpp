// gateway, the load program of the idle tracker: a TCP message channel that drops connections which
// send nothing for 30 s, and a load that checks that it does. (The one-page example is
// examples/gateway.cpp.)
//
//   gateway serve --port 7000                       # in one terminal
//   gateway load --port 7000 --connections 10000    # in another
//   run --connections 100000 --rate 3000            # both, in as many processes as the limit of
//                                                   # descriptors requires

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app(
      "A TCP message channel that drops connections without a packet for a time-out "
      "(carillon::IdleTracker), and\n"
      "a load of connections for it, some of which fall silent.",
      "gateway");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  gateway serve --port 7000                      drop whoever is silent for 30 s\n"
      "  gateway load --port 7000 --connections 10000   and see whether it does\n"
      "  printf '\\0\\11L\\0\\0\\0\\0\\0\\0\\0\\7' | nc 127.0.0.1 7000   log in as 7, and be "
      "dropped\n\n"
      "The script `run`, beside the sources, starts as many of both as 100 000 connections need.");
  int exit_code = 0;
  gateway::add_serve(app, exit_code);
  gateway::add_load(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gateway: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
