// The clock, descriptors, memory and ports of the machine, as `carillon check` looks at them.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/start_error.h"
#include "cli/checks.h"
#include "cli/error_text.h"
#include "cli/progress.h"
#include "server/descriptors.h"
#include "server/net/memory_shares.h"

namespace carillon::cli {
namespace {

constexpr std::int64_t kNsInSecond = 1'000'000'000;
constexpr std::int64_t kStep = 50'000'000;         // ns; slewing moves a clock by 1 ms in 2 s
constexpr std::time_t kFirstYear = 1'735'689'600;  // 2025-01-01
constexpr std::size_t kUsualConnections = 10'000;  // the default of --max-connections

// Returns the number after `name` in a file of lines "name: number ...", or none.
std::optional<std::uint64_t> number_in(const std::string& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10);
  }
  return std::nullopt;
}

// In the text of ip_local_reserved_ports, "11300,11380-11390".
bool is_reserved(std::uint16_t port, const std::string& ranges) {
  std::istringstream parts(ranges);
  for (std::string part; std::getline(parts, part, ',');) {
    char* rest = nullptr;
    const auto first = std::strtoul(part.c_str(), &rest, 10);
    const auto last = *rest == '-' ? std::strtoul(rest + 1, nullptr, 10) : first;
    if (first <= port && port <= last) return true;
  }
  return false;
}

std::int64_t ns_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * kNsInSecond + time.tv_nsec;
}

}  // namespace

std::int64_t clock_offset() {
  return ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC);
}

void check_clock(std::int64_t before, Findings& findings) {
  const std::int64_t moved = clock_offset() - before;
  const std::string by = fmt::format("{:+.3f} s", static_cast<double>(moved) / kNsInSecond);
  if (std::time(nullptr) < kFirstYear) {
    findings.fail("clock", "is wrong: it shows a time before 2025", "set it");
    return;
  }
  if (moved > kStep || moved < -kStep) {
    findings.warn("clock", fmt::format("was set by {} during the check", by),
                  "let a daemon that slews it (chrony) keep it");
  }
  timex state{};
  const int answer = ::adjtimex(&state);
  if (answer < 0) {
    findings.ok("clock",
                "the system does not say whether it is synchronised: " + error_text(errno));
  } else if (answer == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
    findings.warn("clock", "is not synchronised: jobs come by a clock that drifts",
                  "start chrony or systemd-timesyncd; in a container, on the host");
  } else {
    findings.ok("clock", fmt::format("synchronised, to {:.1f} ms at the worst",
                                     static_cast<double>(state.maxerror) / 1'000));
  }
}

void check_descriptors(std::optional<pid_t> server, Findings& findings) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  std::uint64_t allowed = limit.rlim_max;
  if (server) {
    const std::string file = fmt::format("/proc/{}/limits", *server);
    allowed = number_in(file, "Max open files").value_or(allowed);
  }
  const std::string advice = "raise LimitNOFILE of the service, or ulimit -Hn";
  try {
    const auto shares = server::share_descriptors(allowed, kUsualConnections, true);
    const std::string text = fmt::format("{}: {} connections, and {} files of the store", allowed,
                                         shares.connections, shares.open_files);
    if (shares.connections >= kUsualConnections) return findings.ok("descriptors", text);
    findings.warn("descriptors", text, advice + ", if more connections are wanted");
  } catch (const base::StartError& error) {
    findings.fail("descriptors", error.what(), advice);
  }
}

void check_memory(std::optional<pid_t> server, Findings& findings) {
  const std::uint64_t limit = server::memory_limit();
  const auto machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string text =
      fmt::format("{} of the {}", size_text(limit), limit < machine ? "control group" : "machine");
  if (limit < 2 * server::kLeastMemory) {
    findings.warn("memory", text + "; the server takes half, and at least 128 MiB",
                  "allow 256 MiB, or the kernel may end the server");
  } else {
    findings.ok("memory", text + "; the server takes half, unless --memory is given");
  }
  std::uint64_t overcommit = 0;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> overcommit;
  if (overcommit == 2) {
    findings.warn("overcommit",
                  "vm.overcommit_memory is 2: memory may be refused while there is "
                  "some, and puts with it (OUT_OF_MEMORY)",
                  "set it to 0 or 1, or give the server's --memory room below CommitLimit");
  }
  const std::uint64_t swap = number_in("/proc/meminfo", "SwapTotal:").value_or(0) << 10;
  const std::string status = server ? fmt::format("/proc/{}/status", *server) : "";
  const std::uint64_t swapped = number_in(status, "VmSwap:").value_or(0) << 10;
  if (swapped > 0) {
    findings.warn(
        "swap",
        fmt::format("{} of the server are swapped out: it answers late", size_text(swapped)),
        "lower --memory or vm.swappiness, or set MemorySwapMax=0 of the service");
  } else {
    findings.ok("swap", swap == 0 ? "none" : size_text(swap) + ", not used by a server");
  }
}

void check_port(const server::Address& address, Findings& findings) {
  if (address.is_unix()) return;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  std::string reserved;
  std::ifstream("/proc/sys/net/ipv4/ip_local_reserved_ports") >> reserved;
  if (address.port < first || address.port > last || is_reserved(address.port, reserved)) return;
  findings.warn("port",
                fmt::format("{} is one that the system gives to outgoing connections "
                            "({} to {}): a start may find it taken",
                            address.port, first, last),
                fmt::format("sysctl net.ipv4.ip_local_reserved_ports={}", address.port));
}

}  // namespace carillon::cli
