// Loads a download centre whose queue is Carillon or a table in PostgreSQL. ./compare runs it.
//
//   carillon_bench_download_centre carillon --server 127.0.0.1:11300
//   carillon_bench_download_centre postgres --server "host=/tmp/socket dbname=bench" --poll-ms 1000

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "centre.h"

namespace {

using carillon::bench::Plan;

void add_flags(CLI::App& app, Plan& plan) {
  app.option_defaults()->always_capture_default();
  app.add_option("--server", plan.server, "HOST:PORT, or a connection string of PostgreSQL");
  app.add_option("--rate", plan.rate, "puts per second");
  app.add_option("--warm-up", plan.warm_up, "seconds before the measurement");
  app.add_option("--seconds", plan.seconds, "of the measurement");
  app.add_option("--drain", plan.drain, "instead: N downloads of no length, all due")
      ->type_name("N");
  app.add_option("--most-delay-ms", plan.most_delay_ms, "a download is due by then");
  app.add_option("--least-ms", plan.least_ms, "the shortest download");
  app.add_option("--most-ms", plan.most_ms, "the longest download");
  app.add_option("--sites", plan.sites, "the first has a fifth of all")->check(CLI::Range(2, 1000));
  app.add_option("--at-once", plan.at_once, "downloads of a site that run at once");
  app.add_option("--comes-back-ms", plan.comes_back_ms, "delay of what exceeds that");
  app.add_option("--producers", plan.producers, "connections")->check(CLI::PositiveNumber);
  app.add_option("--consumers", plan.consumers, "connections (Carillon)");
  app.add_option("--poll-ms", plan.poll_ms, "interval of the polls (PostgreSQL)");
  app.add_flag("--hold", plan.hold, "wait for a line of input at each event (./compare)");
  app.add_flag("--notify", plan.notify, "sleep until the next due time instead (PostgreSQL)");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Loads a download centre, and prints JSON.");
  Plan plan;
  add_flags(app, plan);
  app.require_subcommand(1);
  app.fallthrough();
  const CLI::App* const carillon = app.add_subcommand("carillon", "its queue is Carillon");
  app.add_subcommand("postgres", "its queue is a table in PostgreSQL");
  CLI11_PARSE(app, argc, argv);
  try {
    carillon::bench::run_centre(plan, carillon->parsed() ? &carillon::bench::carillon_queue
                                                         : &carillon::bench::postgres_queue);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_download_centre: %s\n", error.what());
    return 1;
  }
}
