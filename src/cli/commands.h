// The subcommands of `carillon`: what each is called, what it shows in the overview, and the
// function that adds it.
//
// Each subcommand lives in one file, named after it, and is one function:
//
//     void add_put(CLI::App& app, int& exit_code);
//
// It adds its CLI11 subcommand to `app` and binds a callback. The callback does the work after all
// arguments were parsed, and leaves the exit code of the process in `exit_code`, which outlives
// `app` and starts as kSuccess. It may throw UsageError or Failure (exit_status.h); run() turns any
// exception into one line on stderr, "carillon put: what was wrong", and the matching exit code.
// The description of the subcommand is set from the table below.
#pragma once

#include <array>
#include <string_view>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name for it
class App;
}

namespace carillon::cli {

void add_serve(CLI::App& app, int& exit_code);
void add_put(CLI::App& app, int& exit_code);
void add_reserve(CLI::App& app, int& exit_code);
void add_delete(CLI::App& app, int& exit_code);
void add_kick(CLI::App& app, int& exit_code);
void add_peek(CLI::App& app, int& exit_code);
void add_stats(CLI::App& app, int& exit_code);
void add_work(CLI::App& app, int& exit_code);

/// `carillon beanstalkd ARGS`, and what the program does when it is called by the name
/// `beanstalkd`. It parses beanstalkd's own flags itself (-h and -V among them). argv[0] is the
/// name to use in messages; returns the exit code.
int run_beanstalkd(int argc, char** argv);

/// One line of the overview that `carillon` and `carillon --help` print.
struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  void (*add)(CLI::App& app,
              int& exit_code);  // null: gets its arguments raw, before any parsing (beanstalkd)
};

inline constexpr std::array<Command, 9> kCommands{{
    {"serve", "Run the server", "carillon serve --data ./carillon-data", add_serve},
    {"put", "Put a job, to be handed out now or at its time", "carillon put --delay 3s \"hello\"",
     add_put},
    {"reserve", "Wait for a job and print its body", "carillon reserve --delete", add_reserve},
    {"work", "Run a command for each job", "carillon work --jobs 4 -- ./send-mail", add_work},
    {"delete", "Delete jobs", "carillon delete 7 8", add_delete},
    {"kick", "Make buried or delayed jobs ready now", "carillon kick 10 --tube mail", add_kick},
    {"peek", "Look at a job without taking it", "carillon peek --delayed", add_peek},
    {"stats", "Show counters of the server, a tube or a job", "carillon stats --tube mail",
     add_stats},
    {"beanstalkd", "Run the server with beanstalkd's own flags",
     "carillon beanstalkd -b ./data -p 11300", nullptr},
}};

}  // namespace carillon::cli
