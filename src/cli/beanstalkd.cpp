// `carillon beanstalkd`, and `carillon` called by the name `beanstalkd`: runs the server with
// beanstalkd's own flags, for scripts and test suites that start beanstalkd.
//
// Two differences are on purpose: without -l it listens on 127.0.0.1, not on every address of the
// machine, and with an -l that other machines can reach it wants --tokens or --allow-anonymous, and
// --tls-cert and --tls-key or --allow-plaintext. As in beanstalkd, clients may stall without a
// limit; beanstalkd has no flag for one.

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "server/logging.h"
#include "server/server.h"
#include "server/text/address.h"

namespace carillon::cli {
namespace {

using server::kDefaultMaxJobSize;
using server::kLargestMaxJobSize;

constexpr int kBeanstalkdUsage = 5;  // beanstalkd's exit code for wrong flags

constexpr std::string_view kUsage =
    R"(Use: {0} [OPTIONS]

Options:
 -b DIR   keep the jobs in this directory (default: in memory only)
 -f MS    fsync at most once every MS milliseconds (default is 50 ms);
          use -f0 to fsync before each reply
 -F       never fsync: leave it to the operating system
 -l ADDR  listen on address, or unix:PATH (default is 127.0.0.1)
 -p PORT  listen on port (default is 11300)
 -u USER  become user and group
 -z BYTES set the maximum job size in bytes (default is {1});
          max allowed is {2} bytes
 -s BYTES accepted and ignored: there are no log files of a fixed size
 -c, -n   accepted and ignored
 -v       show version information
 -V       increase verbosity
 -h       show this help
 --http ADDR        answer HTTP there, which Carillon's own commands need
 --tokens FILE      ask each client for a token (carillon serve --help)
 --allow-anonymous  listen beyond this machine without tokens
 --tls-cert FILE    speak TLS, with this certificate
 --tls-key FILE     and this key
 --tls-client-ca FILE  clients show a certificate that one in it has signed
 --allow-plaintext  listen beyond this machine without TLS

Example: {0} -b ./data -p 11300 -f0
)";

constexpr char kTokens = '\1';
constexpr char kAllowAnonymous = '\2';
constexpr char kTlsCert = '\3';
constexpr char kTlsKey = '\4';
constexpr char kAllowPlaintext = '\5';
constexpr char kTlsClientCa = '\6';
constexpr char kHttp = '\7';

struct LongFlag {
  std::string_view name;
  char letter;
};
constexpr std::array kLongFlags = {LongFlag{"--help", 'h'},
                                   LongFlag{"--http", kHttp},
                                   LongFlag{"--tokens", kTokens},
                                   LongFlag{"--allow-anonymous", kAllowAnonymous},
                                   LongFlag{"--tls-cert", kTlsCert},
                                   LongFlag{"--tls-key", kTlsKey},
                                   LongFlag{"--tls-client-ca", kTlsClientCa},
                                   LongFlag{"--allow-plaintext", kAllowPlaintext}};

struct BeanstalkdUsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads flags as beanstalkd does: `-p 1`, `-p1`, and several in one word (`-Vp1`). A word that is
// not a flag is an error.
class Flags {
 public:
  Flags(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  // Returns the next flag's letter, or nothing after the last one. beanstalkd has no long flags,
  // and these are added; --help because every other command of this program has it.
  std::optional<char> next() {
    while (rest_.empty()) {
      if (at_ == words_.size()) return std::nullopt;
      const std::string_view word = words_[at_++];
      for (const LongFlag& flag : kLongFlags)
        if (word == flag.name) return flag.letter;
      if (word.size() < 2 || word.front() != '-') {
        throw BeanstalkdUsageError("unknown argument: " + std::string(word));
      }
      rest_ = word.substr(1);
    }
    const char flag = rest_.front();
    rest_.remove_prefix(1);
    return flag;
  }

  // Throws the error for an unknown flag. Quotes the whole word if it is a long option; beanstalkd
  // has no long options. REQUIRES: `flag` is the flag that next() returned last.
  [[noreturn]] void refuse(char flag) const {
    const std::string_view word = words_[at_ - 1];
    throw BeanstalkdUsageError("unknown flag: " +
                               (flag == '-' ? std::string(word) : std::string("-") + flag));
  }

  // Returns the flag's value: the rest of its word, or the next word.
  std::string value_of(char flag) {
    std::string_view value = rest_;
    rest_ = {};
    if (value.empty()) {
      if (at_ == words_.size()) {
        const std::string_view word = words_[at_ - 1];
        throw BeanstalkdUsageError("flag requires an argument: " + (word.starts_with("--")
                                                                        ? std::string(word)
                                                                        : std::string("-") + flag));
      }
      value = words_[at_++];
    }
    return std::string(value);
  }

  std::uint64_t number_of(char flag) {
    const std::string value = value_of(flag);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size())
      throw BeanstalkdUsageError("invalid size: " + value);
    return number;
  }

 private:
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
  std::string_view rest_;
};

struct Request {
  server::ServerOptions options;
  std::string host = "127.0.0.1";
  std::string port = std::to_string(server::kBeanstalkPort);
  server::TlsFiles tls;
  int verbosity = 0;
  bool help = false;
  bool version = false;
};

queue::SyncPolicy sync_every(std::uint64_t ms) {
  if (ms == 0) return queue::SyncPolicy::always();
  constexpr std::uint64_t kLongest = 86'400'000;  // a day
  return queue::SyncPolicy::every(std::chrono::milliseconds(ms < kLongest ? ms : kLongest));
}

std::uint32_t max_job_size(std::uint64_t bytes, const char* name) {
  if (bytes <= kLargestMaxJobSize) return static_cast<std::uint32_t>(bytes);
  std::fprintf(stderr, "%s: maximum job size was set to %u\n", name, kLargestMaxJobSize);
  return kLargestMaxJobSize;
}

Request read_flags(int argc, char** argv) {
  Request request;
  request.options.sync = queue::SyncPolicy::every(std::chrono::milliseconds(50));
  request.options.stall_timeout = std::chrono::milliseconds(0);
  Flags flags(argc, argv);
  while (const auto flag = flags.next()) {
    switch (*flag) {
      case 'b':
        request.options.data_dir = flags.value_of('b');
        break;
      case 'f':
        request.options.sync = sync_every(flags.number_of('f'));
        break;
      case 'F':
        request.options.sync = queue::SyncPolicy::os();
        break;
      case 'l':
        request.host = flags.value_of('l');
        break;
      case 'p':
        request.port = flags.value_of('p');
        break;
      case 'u':
        request.options.user = flags.value_of('u');
        break;
      case 'z':
        request.options.beanstalk.max_job_size = max_job_size(flags.number_of('z'), argv[0]);
        break;
      case 's':
        flags.number_of('s');
        break;
      case kHttp:
        request.options.http_listen.push_back(
            server::parse_address(flags.value_of(kHttp), server::kHttpPort));
        break;
      case kTokens:
        request.options.tokens = flags.value_of(kTokens);
        break;
      case kAllowAnonymous:
        request.options.allow_anonymous = true;
        break;
      case kTlsCert:
        request.tls.certificate = flags.value_of(kTlsCert);
        break;
      case kTlsKey:
        request.tls.key = flags.value_of(kTlsKey);
        break;
      case kTlsClientCa:
        request.tls.client_ca = flags.value_of(kTlsClientCa);
        break;
      case kAllowPlaintext:
        request.options.allow_plaintext = true;
        break;
      case 'c':
        break;
      case 'n':
        break;
      case 'V':
        ++request.verbosity;
        break;
      case 'v':
        request.version = true;
        return request;
      case 'h':
        request.help = true;
        return request;
      default:
        flags.refuse(*flag);
    }
  }
  return request;
}

server::Address address_of(const Request& request) {
  if (request.host.starts_with("unix:")) return server::parse_address(request.host);
  return {.host = request.host, .port = server::parse_port(request.port), .path = {}};
}

void print_usage(std::FILE* to, const char* name) {
  fmt::print(to, kUsage, name, kDefaultMaxJobSize, kLargestMaxJobSize);
}

int fail(const char* name, std::string_view why, int exit_code) {
  fmt::print(stderr, "{}: {}\n", name, why);
  return exit_code;
}

}  // namespace

int run_beanstalkd(int argc, char** argv) {
  const char* name = argv[0];
  try {
    Request request = read_flags(argc, argv);
    if (request.help) return print_usage(stdout, name), kSuccess;
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
    return fail(name, fmt::format("{} (-h shows the flags)", error.what()), kBeanstalkdUsage);
  } catch (const std::invalid_argument& error) {
    return fail(name, error.what(), kBeanstalkdUsage);
  } catch (const base::StartError& error) {
    return fail(name, error.what(), kFailure);
  }
}

}  // namespace carillon::cli
