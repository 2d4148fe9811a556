// The table of subcommands: for each its name, its lines in the overview, and the function that
// adds it to the parser.
//
// Each subcommand has one public function, in a file of its own name or in one with its like:
// single jobs in jobs.cpp, many in bulk.cpp, tubes in tube_commands.cpp and list.cpp, endpoints in
// schedule.cpp, reserve in put.cpp, stats in stats_fields.cpp.
//
//     void add_put(CLI::App& command, int& exit_code);
//
// The function adds arguments to `command` and binds a callback. The callback does the work after
// all arguments were parsed, and stores the exit code of the process in `exit_code`, which outlives
// `command` and starts as kSuccess. It may throw UsageError or Failure (exit_status.h).
// run_command_line() turns every exception into one line on stderr, "carillon put: what was wrong",
// and the matching exit code. The command's name and description come from the
// table below.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name for it
class App;
}

namespace carillon::cli {

using AddCommand = void(CLI::App& command, int& exit_code);
AddCommand add_serve, add_put, add_reserve, add_work, add_delete, add_cancel, add_patch;
AddCommand add_release, add_bury, add_kick, add_pause, add_resume, add_drain, add_list, add_due;
AddCommand add_retry, add_move, add_spread, add_clear, add_peek, add_stats, add_top, add_schedule;
AddCommand add_tube, add_endpoint, add_token, add_backup, add_export, add_import, add_check;
AddCommand add_cluster;

// Runs `carillon beanstalkd ARGS`, and also `beanstalkd ARGS` if the program was called by that
// name. Parses beanstalkd's flags itself, -h and -V included. argv[0] is the name to use in
// messages. Returns the exit code.
int run_beanstalkd(int argc, char** argv);

// Runs the whole program: picks the subcommand, parses its arguments, runs it and reports each
// error as one line on standard error that starts with the command's name. Returns the exit code of
// the process (exit_status.h). Throws nothing.
int run_command_line(int argc, char** argv);

// Returns the script that lets a shell (bash, zsh or fish) complete commands and options. It is
// made from what the parser knows, so no option can be missing. Throws UsageError for another
// shell.
std::string completion_script(std::string_view shell);

// A flag of that command, for its help and for completion.
struct BeanstalkdFlag {
  std::string_view name;   // "-b", "--tokens"
  std::string_view value;  // "DIR"; empty: it takes none
  std::string_view help;
};
std::vector<BeanstalkdFlag> beanstalkd_flags();

// A subcommand as `carillon` and `carillon --help` list it.
struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  // Null for beanstalkd, which gets its arguments unparsed.
  AddCommand* add;
};

inline constexpr auto kCommands = std::to_array<Command>({
    {"serve", "Run the server", "carillon serve --data ./carillon-data", add_serve},
    {"put", "Put a job, to be handed out now or at its time", "carillon put --delay 3s \"hello\"",
     add_put},
    {"reserve", "Wait for a job and print its body", "carillon reserve --delete", add_reserve},
    {"work", "Run a command for each job", "carillon work --jobs 4 -- ./send-mail", add_work},
    {"delete", "Delete jobs", "carillon delete 7 8", add_delete},
    {"cancel", "Delete jobs that nobody works on, by id or key", "carillon cancel --key invoice-7",
     add_cancel},
    {"patch", "Change waiting jobs: body, priority, times", "carillon patch 7 --pri 0", add_patch},
    {"release", "Make waiting jobs ready now, or at another time", "carillon release 7 --delay 1h",
     add_release},
    {"bury", "Set jobs aside, until they are kicked or released", "carillon bury 7", add_bury},
    {"kick", "Make buried or delayed jobs ready now", "carillon kick 10 --tube mail", add_kick},
    {"pause", "Give workers no jobs of a tube for a time", "carillon pause mail 10m", add_pause},
    {"resume", "End the pause of a tube", "carillon resume mail", add_resume},
    {"drain", "Refuse puts into a tube, and let it run empty", "carillon drain mail --wait",
     add_drain},
    {"list", "List the tubes, or the jobs of a tube", "carillon list mail --state dead", add_list},
    {"due", "Draw how many jobs are due when", "carillon due mail --by hour", add_due},
    {"retry", "Make buried jobs ready, attempts begin anew", "carillon retry mail --state dead",
     add_retry},
    {"move", "Move jobs to another tube", "carillon move mail slow-mail --due-after 24h", add_move},
    {"spread", "Deal a storm of delayed jobs out over a longer time",
     "carillon spread mail --due-after 30m --due-before 31m --over 1h", add_spread},
    {"clear", "Delete many jobs of a tube", "carillon clear mail --state dead", add_clear},
    {"peek", "Look at a job without taking it", "carillon peek --delayed", add_peek},
    {"stats", "Show counters of the server, a tube or a job", "carillon stats --tube mail",
     add_stats},
    {"top", "Show what the server does, each second", "carillon top", add_top},
    {"schedule", "Put a job again and again, at set times",
     "carillon schedule set report --cron \"30 8 * * MON-FRI\" \"sales\"", add_schedule},
    {"tube", "Set or show the limits and retries of a tube",
     "carillon tube set api --max-running 10 --rate 100/1m", add_tube},
    {"endpoint", "Post the jobs of a tube to a URL",
     "carillon endpoint set b --tube bills --url https://example.com/b", add_endpoint},
    {"token", "Make a token that a client must show",
     "carillon token new --name ci --scope put,work", add_token},
    {"backup", "Copy the jobs of a running server", "carillon backup /backups/monday", add_backup},
    {"export", "Write the jobs to a file of JSON lines", "carillon export --out jobs.jsonl",
     add_export},
    {"import", "Put the jobs of such a file, or of a beanstalkd", "carillon import jobs.jsonl",
     add_import},
    {"check", "Look a deployment over: disk, clock, limits, server",
     "carillon check --data /var/lib/carillon", add_check},
    {"cluster", "Make and show a cluster: several machines, one owner",
     "carillon cluster init postgresql://carillon@db/carillon", add_cluster},
    {"beanstalkd", "Run the server with beanstalkd's own flags",
     "carillon beanstalkd -b ./data -p 11300", nullptr},
});

}  // namespace carillon::cli
