// `carillon beanstalkd`, and `carillon` called by the name `beanstalkd`: runs the server with
// beanstalkd's own flags, for scripts and test suites that start beanstalkd.
//
// Two differences are on purpose: without -l it listens on 127.0.0.1, not on every address of the
// machine, and with an -l that other machines can reach it wants --tokens or --allow-anonymous, and
// --tls-cert and --tls-key or --allow-plaintext. As in beanstalkd, clients may stall without a
// limit; beanstalkd has no flag for one.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "server/logging.h"
#include "server/server.h"
#include "server/text/address.h"
#include "server/text/whole_number.h"

namespace carillon::cli {
namespace {

using server::kDefaultMaxJobSize;
using server::kLargestMaxJobSize;

constexpr int kBeanstalkdUsage = 5;  // beanstalkd's exit code for wrong flags

struct BeanstalkdUsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BeanstalkdArgs {
  std::string name;  // by which the program was called
  server::ServerOptions options;
  std::string host = "127.0.0.1";
  std::string port = std::to_string(server::kBeanstalkPort);
  server::TlsFiles tls;
  int verbosity = 0;
  bool help = false;
  bool version = false;
};

std::uint64_t number_in(const std::string& value) {
  const auto number = server::whole_number<std::uint64_t>(value);
  if (!number) throw BeanstalkdUsageError("invalid size: " + value);
  return *number;
}

queue::SyncPolicy sync_every(std::uint64_t ms) {
  if (ms == 0) return queue::SyncPolicy::always();
  constexpr std::uint64_t kLongest = 86'400'000;  // a day
  return queue::SyncPolicy::every(std::chrono::milliseconds(ms < kLongest ? ms : kLongest));
}

std::uint32_t max_job_size(std::uint64_t bytes, const std::string& name) {
  if (bytes <= kLargestMaxJobSize) return static_cast<std::uint32_t>(bytes);
  fmt::print(stderr, "{}: maximum job size was set to {}\n", name, kLargestMaxJobSize);
  return kLargestMaxJobSize;
}

// The flags and their actions. A flag without a value gets an empty text.
using Set = void (*)(BeanstalkdArgs& request, const std::string& value);

struct SettingFlag : BeanstalkdFlag {
  Set set;
};

constexpr SettingFlag kFlags[] = {
    {{"-b", "DIR", "keep the jobs in this directory (default: in memory only)"},
     [](BeanstalkdArgs& r, const std::string& v) { r.options.data_dir = v; }},
    {{"-f", "MS",
      "fsync at most once in MS milliseconds (default is 50 ms);\n-f0 to fsync before each reply"},
     [](BeanstalkdArgs& r, const std::string& v) { r.options.sync = sync_every(number_in(v)); }},
    {{"-F", "", "never fsync: leave it to the operating system"},
     [](BeanstalkdArgs& r, const std::string&) { r.options.sync = queue::SyncPolicy::os(); }},
    {{"-l", "ADDR", "listen on address, or unix:PATH (default is 127.0.0.1)"},
     [](BeanstalkdArgs& r, const std::string& v) { r.host = v; }},
    {{"-p", "PORT", "listen on port (default is 11300)"},
     [](BeanstalkdArgs& r, const std::string& v) { r.port = v; }},
    {{"-u", "USER", "become user and group"},
     [](BeanstalkdArgs& r, const std::string& v) { r.options.user = v; }},
    {{"-z", "BYTES",
      "set the maximum job size in bytes (default is 65535);\nmax allowed is 67108864 bytes"},
     [](BeanstalkdArgs& r, const std::string& v) {
       r.options.beanstalk.max_job_size = max_job_size(number_in(v), r.name);
     }},
    {{"-s", "BYTES", "accepted and ignored: there are no log files of a fixed size"},
     [](BeanstalkdArgs&, const std::string& v) { number_in(v); }},
    {{"-c", "", "accepted and ignored"}, [](BeanstalkdArgs&, const std::string&) {}},
    {{"-n", "", "accepted and ignored"}, [](BeanstalkdArgs&, const std::string&) {}},
    {{"-v", "", "show version information"},
     [](BeanstalkdArgs& r, const std::string&) { r.version = true; }},
    {{"-V", "", "increase verbosity"},
     [](BeanstalkdArgs& r, const std::string&) { ++r.verbosity; }},
    {{"-h", "", "show this help"}, [](BeanstalkdArgs& r, const std::string&) { r.help = true; }},
    {{"--http", "ADDR", "answer HTTP there, which most commands of carillon need"},
     [](BeanstalkdArgs& r, const std::string& v) {
       r.options.http_listen.push_back(server::parse_address(v, server::kHttpPort));
     }},
    {{"--tokens", "FILE", "ask each client for a token (carillon serve --help)"},
     [](BeanstalkdArgs& r, const std::string& v) { r.options.tokens = v; }},
    {{"--allow-anonymous", "", "listen beyond this machine without tokens"},
     [](BeanstalkdArgs& r, const std::string&) { r.options.allow_anonymous = true; }},
    {{"--tls-cert", "FILE", "speak TLS, with this certificate"},
     [](BeanstalkdArgs& r, const std::string& v) { r.tls.certificate = v; }},
    {{"--tls-key", "FILE", "and this key"},
     [](BeanstalkdArgs& r, const std::string& v) { r.tls.key = v; }},
    {{"--tls-client-ca", "FILE", "clients show a certificate that one in it has signed"},
     [](BeanstalkdArgs& r, const std::string& v) { r.tls.client_ca = v; }},
    {{"--allow-plaintext", "", "listen beyond this machine without TLS"},
     [](BeanstalkdArgs& r, const std::string&) { r.options.allow_plaintext = true; }},
};
static_assert(kDefaultMaxJobSize == 65'535 && kLargestMaxJobSize == 67'108'864);

// beanstalkd has no long flags; --help is there because every other command has it.
const SettingFlag* find_flag(std::string_view name) {
  if (name == "--help") name = "-h";
  const auto* const found =
      std::find_if(std::begin(kFlags), std::end(kFlags),
                   [&](const SettingFlag& flag) { return flag.name == name; });
  return found == std::end(kFlags) ? nullptr : found;
}

// Reads flags as beanstalkd does: `-p 1`, `-p1`, and several in one word (`-Vp1`). A word that is
// not a flag is an error. -v and -h end the reading.
BeanstalkdArgs read_flags(int argc, char** argv) {
  BeanstalkdArgs request;
  request.name = argv[0];
  request.options.sync = queue::SyncPolicy::every(std::chrono::milliseconds(50));
  request.options.stall_timeout = std::chrono::milliseconds(0);
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  std::size_t at = 0;
  std::string_view rest;  // the flags of a word that were not read yet
  while ((!rest.empty() || at < words.size()) && !request.help && !request.version) {
    if (rest.empty()) rest = words[at++];
    const std::string_view word = words[at - 1];
    const bool begins = rest.data() == word.data();
    if (begins && (word.size() < 2 || word.front() != '-'))
      throw BeanstalkdUsageError(fmt::format("unknown argument: {}", word));
    const bool is_long = begins && find_flag(word) != nullptr;
    if (begins && !is_long) rest.remove_prefix(1);
    const std::string name = is_long ? std::string(word) : fmt::format("-{}", rest.front());
    rest.remove_prefix(is_long ? rest.size() : 1);
    const SettingFlag* const flag = find_flag(name);
    if (flag == nullptr)
      throw BeanstalkdUsageError(fmt::format("unknown flag: {}", name == "--" ? word : name));
    std::string value;
    if (!flag->value.empty()) {
      if (rest.empty() && at == words.size())
        throw BeanstalkdUsageError("flag requires an argument: " + name);
      value = rest.empty() ? words[at++] : rest;
      rest = {};
    }
    flag->set(request, value);
  }
  return request;
}

server::Address address_of(const BeanstalkdArgs& request) {
  if (request.host.starts_with("unix:")) return server::parse_address(request.host);
  return {.host = request.host, .port = server::parse_port(request.port), .path = {}};
}

void print_usage(const std::string& name) {
  fmt::print("Use: {} [OPTIONS]\n\nOptions:\n", name);
  for (const SettingFlag& flag : kFlags) {
    const std::size_t width = flag.name.starts_with("--") ? 22 : 9;
    const std::string shown = fmt::format("{} {}", flag.name, flag.value);
    std::string help(flag.help);
    if (const std::size_t line = help.find('\n'); line != help.npos)
      help.insert(line + 1, std::string(width + 1, ' '));
    fmt::print(" {:<{}}{}\n", shown, width, help);
  }
  fmt::print("\nExample: {} -b ./data -p 11300 -f0\n", name);
}

int fail_by_name(const char* name, std::string_view why, int exit_code) {
  fmt::print(stderr, "{}: {}\n", name, why);
  return exit_code;
}

}  // namespace

std::vector<BeanstalkdFlag> beanstalkd_flags() {
  return {std::begin(kFlags), std::end(kFlags)};
}

int run_beanstalkd(int argc, char** argv) {
  const char* name = argv[0];
  try {
    BeanstalkdArgs request = read_flags(argc, argv);
    if (request.help) return print_usage(request.name), kSuccess;
    if (request.version) return fmt::print("carillon {}\n", CARILLON_VERSION), kSuccess;
    request.options.listen = {address_of(request)};
    if (request.tls.certificate.empty() != request.tls.key.empty())
      throw BeanstalkdUsageError("--tls-cert and --tls-key go together");
    if (request.tls.client_ca && request.tls.key.empty())
      throw BeanstalkdUsageError("--tls-client-ca needs --tls-cert and --tls-key");
    if (!request.tls.key.empty()) request.options.tls = request.tls;
    server::log_to_stderr(request.verbosity > 0 ? spdlog::level::info : spdlog::level::warn);
    return server::run_server(request.options);
  } catch (const BeanstalkdUsageError& error) {
    return fail_by_name(name, fmt::format("{} (-h shows the flags)", error.what()),
                        kBeanstalkdUsage);
  } catch (const std::invalid_argument& error) {
    return fail_by_name(name, error.what(), kBeanstalkdUsage);
  } catch (const base::StartError& error) {
    return fail_by_name(name, error.what(), kFailure);
  }
}

}  // namespace carillon::cli
