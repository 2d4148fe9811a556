// carillon_bench_idle: the cost of a packet that keeps a connection alive, in IdleTracker and in
// the designs that it replaces.
//
//   carillon_bench_idle [--n 100000,1000000] [--runs 5] [--only tracker,list] [--patience 30]
//                       [--json]
//
// There are n connections with a time-out of 30 000 ticks. Each sends one packet in every 10 000
// ticks, at random, so there are n / 10 000 packets a tick; each tick is advanced to. A figure is
// the CPU time of the thread per packet, in ns, including the packet's share of all later work:
// re-filing, cascades, scans. The runs of the designs alternate, so that other load on the machine
// affects all of them alike; each figure is the median of the runs. "times" is the figure divided
// by that of IdleTracker: above 1 the tracker wins.
//
// Ring and scan advance once a second, every thousand ticks, as published. Designs that need a
// microsecond per packet are measured over fewer packets. A design that needs more than --patience
// seconds of CPU for the log-ins is left out: "–". All designs are in memory at the same time:
// 10^7 connections need 8 GB.
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "contenders.h"
#include "wheel/stopwatch.h"

namespace carillon::bench {
namespace {

struct Options {
  std::vector<std::size_t> sizes{100'000, 1'000'000};
  std::size_t runs = 5;
  double patience = 30;  // seconds
  std::vector<std::string> only;
  bool json = false;
};

std::size_t malloced_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// The senders of the next packets: three permutations of all connections, over and over. Two
// packets of a connection are less than two periods apart, so no connection is ever idle.
class Packets {
 public:
  explicit Packets(std::size_t connections)
      : per_tick_(connections / kPeriod), senders_(3 * connections) {
    std::mt19937_64 random(42);
    for (std::size_t turn = 0; turn < 3; ++turn) {
      const auto first = senders_.begin() + static_cast<std::ptrdiff_t>(turn * connections);
      const auto last = first + static_cast<std::ptrdiff_t>(connections);
      std::iota(first, last, 0U);
      std::shuffle(first, last, random);
    }
  }
  std::size_t per_tick() const { return per_tick_; }
  const std::uint32_t* at(Tick tick) const { return &senders_[tick % (3 * kPeriod) * per_tick_]; }

 private:
  std::size_t per_tick_;
  std::vector<std::uint32_t> senders_;
};

struct Entrant {
  std::string name;
  Tick ticks;                             // per run
  std::function<double(Tick ticks)> run;  // returns ns of CPU; empty if the design is left out
  double bytes_per_connection = 0;        // not counting a key of 4 bytes
  std::vector<double> figures{};          // ns per packet, one per run; empty if left out
};

// Runs `design` for `ticks` ticks from tick `now`, which it moves. Returns ns of CPU.
template <class Design>
double run(Design& design, const Packets& packets, Tick& now, Tick ticks) {
  const Stopwatch stopwatch;
  for (const Tick end = now + ticks; now < end;) {
    design.advance(++now);
    const std::uint32_t* const senders = packets.at(now);
    for (std::size_t i = 0; i < packets.per_tick(); ++i) design.touch(senders[i]);
  }
  return stopwatch.nanoseconds();
}

class Bench {
 public:
  Bench(const Options& options, std::size_t connections)
      : options_(options), connections_(connections), packets_(connections) {}

  std::vector<Entrant> measure() {
    const Tick period = kPeriod * std::max<Tick>(1, 2'000'000 / connections_);
    const Tick few = std::max<Tick>(1000, kPeriod * 200'000 / connections_ / 1000 * 1000);
    enter<Tracker>("tracker", period);
    enter<DefaultWheel>("HierarchicalWheel", period);
    enter<ClassicWheel>("list 256/64x4", period);
    enter<Multimap>("std::multimap", few);
    enter<PacketTimers>("TimerPerPacket", period);
    enter<Ring>("IdleRing", few);
    enter<Scan>("IdleScan", few);
    enter<AsioTimers>("asio::steady_timer", few);
    enter<Floor>("(one random += )", period);
    for (std::size_t turn = 0; turn < options_.runs; ++turn) {
      for (Entrant& entrant : entrants_) {
        if (!entrant.run) continue;
        const double packets = static_cast<double>(entrant.ticks * packets_.per_tick());
        entrant.figures.push_back(entrant.run(entrant.ticks) / packets);
      }
    }
    return std::move(entrants_);
  }

 private:
  bool wanted(std::string_view name) const {
    if (options_.only.empty()) return true;
    return std::any_of(options_.only.begin(), options_.only.end(), [&](const std::string& part) {
      return name.find(part) != std::string_view::npos;
    });
  }

  // Sets a design up: all connections log in within one period. Designs that work lazily then run
  // for three periods, to come to their steady state.
  template <class Design>
  void enter(const char* name, Tick ticks) {
    if (!wanted(name)) return;
    Entrant entrant{name, ticks, {}};
    const Stopwatch stopwatch;
    const std::size_t before = malloced_bytes();
    const auto design = std::make_shared<Design>(connections_);
    const auto now = std::make_shared<Tick>(0);
    std::uint32_t next = 0;
    for (Tick tick = 1; tick <= kPeriod; ++tick) {
      if (stopwatch.nanoseconds() > options_.patience * 1e9)
        return entrants_.push_back(std::move(entrant));
      design->advance(*now = tick);
      for (std::size_t i = 0; i < packets_.per_tick(); ++i) design->add(next++);
    }
    entrant.run = [this, design, now](Tick span) {
      return bench::run(*design, packets_, *now, span);
    };
    if (ticks >= kPeriod) entrant.run(3 * kPeriod);
    std::size_t bytes = malloced_bytes() - before;
    // Some of it is not allocated by malloc.
    if constexpr (requires { design->allocated_bytes(); }) bytes = design->allocated_bytes();
    entrant.bytes_per_connection =
        static_cast<double>(bytes) / static_cast<double>(connections_) - 4;
    entrants_.push_back(std::move(entrant));
  }

  const Options& options_;
  std::size_t connections_;
  Packets packets_;
  std::vector<Entrant> entrants_;
};

// The ns that an advance() by one tick takes with `connections` connections, none of them due.
double empty_tick(std::size_t connections) {
  IdleTracker<std::uint32_t> tracker(Ticks{kTimeout}, 0, MostConnections{connections});
  tracker.reserve(connections);
  for (std::uint32_t connection = 0; connection < connections; ++connection)
    tracker.add(connection);
  constexpr Tick kTicks = 25'000;
  const Stopwatch stopwatch;
  for (Tick tick = 1; tick <= kTicks; ++tick)
    tracker.advance(tick, [](IdleId, std::uint32_t) { cut_off(); });
  return stopwatch.nanoseconds() / kTicks;
}

void print_table(std::size_t connections, const std::vector<Entrant>& entrants, double tick) {
  std::printf("\n%zu connections%26s%10s%18s\n", connections, "ns per packet", "times",
              "bytes/connection");
  if (entrants.front().figures.empty())
    throw std::invalid_argument("--patience: too short for the first design");
  const double ours = median(entrants.front().figures);
  for (const Entrant& entrant : entrants) {
    if (entrant.figures.empty()) {
      std::printf("%-24s%18s\n", entrant.name.c_str(), "–");  // 16 columns: the dash has 3 bytes
      continue;
    }
    const double figure = median(entrant.figures);
    std::printf("%-24s%16.1f%14.1f%18.0f\n", entrant.name.c_str(), figure, figure / ours,
                entrant.bytes_per_connection);
  }
  std::printf("%-24s%16.2f   (tracker, ns)\n", "a tick, nothing due", tick);
  std::fflush(stdout);
}

void print_json(std::size_t connections, const std::vector<Entrant>& entrants, double tick,
                bool last) {
  std::printf("  {\"connections\": %zu, \"empty_tick_ns\": %.2f, \"designs\": [\n", connections,
              tick);
  for (const Entrant& entrant : entrants) {
    const char* const end = &entrant == &entrants.back() ? "" : ",";
    if (entrant.figures.empty()) {
      std::printf("    {\"design\": \"%s\", \"ns_per_packet\": null}%s\n", entrant.name.c_str(),
                  end);
      continue;
    }
    std::printf(
        "    {\"design\": \"%s\", \"ns_per_packet\": %.3f, \"bytes_per_connection\": %.1f}%s\n",
        entrant.name.c_str(), median(entrant.figures), entrant.bytes_per_connection, end);
  }
  std::printf("  ]}%s\n", last ? "" : ",");
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == argc)
      throw std::invalid_argument(std::string(flag) +
                                  ": unknown, or its value is missing; see the top of main.cpp");
    const std::string value = argv[++i];
    if (flag == "--n") {
      options.sizes.clear();
      for (const std::string& size : split(value))
        options.sizes.push_back(std::stoull(size) / kPeriod * kPeriod);
    } else if (flag == "--runs") {
      options.runs = std::stoull(value);
    } else if (flag == "--patience") {
      options.patience = std::stod(value);
    } else if (flag == "--only") {
      options.only = split(value);
    } else {
      throw std::invalid_argument(std::string(flag) + ": unknown flag");
    }
  }
  for (const std::size_t size : options.sizes) {
    if (size == 0) throw std::invalid_argument("--n: at least 10000 connections");
  }
  return options;
}

int run_all(const Options& options) {
  if (options.json) std::printf("[\n");
  for (const std::size_t size : options.sizes) {
    const std::vector<Entrant> entrants = Bench(options, size).measure();
    if (entrants.empty()) throw std::invalid_argument("--only: no design has such a name");
    const double tick = empty_tick(size);
    if (options.json) {
      print_json(size, entrants, tick, size == options.sizes.back());
    } else {
      print_table(size, entrants, tick);
    }
  }
  if (options.json) std::printf("]\n");
  return 0;
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  try {
    return carillon::bench::run_all(carillon::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_idle: %s\n", error.what());
    return 1;
  }
}
