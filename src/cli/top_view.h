// The contents of `carillon top`, as lines of text or as JSON: the counts of a server and its
// tubes, and how fast they change.
//
//   for (const std::string& line : top_lines(shot, {.columns = 80, .rows = 24})) print(line);
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/status.h"
#include "server/api/tubes.h"

namespace carillon::cli {

struct TopTube {
  server::Tube tube;
  // Per second; none if the tube was not there before.
  std::optional<double> put_rate = {};
  std::optional<double> delete_rate = {};
};

// A minute in which many of a tube's jobs are due.
struct TopStorm {
  std::string tube;
  std::uint64_t from = 0;  // UTC ms
  std::uint64_t jobs = 0;
  bool estimated = false;
};

struct TopSnapshot {
  std::uint64_t at = 0;  // UTC ms
  std::string server;    // its address
  server::ServerStats stats;
  // Per second; none at first.
  std::optional<double> put_rate = {};
  std::optional<double> fired_rate = {};
  std::optional<double> delete_rate = {};
  std::vector<TopStorm> storms;  // the nearest first
  std::vector<TopTube> tubes;    // some of them, if there are many
  std::uint64_t all_tubes = 0;
};

// The column that sorts the tubes: the largest first, names from A.
enum class TopOrder : std::uint8_t { kDelayed, kReady, kReserved, kBuried, kPuts, kDeletes, kName };

// Throws std::invalid_argument.
TopOrder parse_top_order(std::string_view text);
TopOrder next_order(TopOrder order);

struct TopLook {
  std::size_t columns = 80;
  // 0: as many as there are.
  std::size_t rows = 0;
  bool colours = false;
  TopOrder order = TopOrder::kDelayed;
  // A fault at present, shown instead of the storms.
  std::string trouble = {};
};

// Each line has at most `look.columns`; the names of tubes are cut where they do not fit.
std::vector<std::string> top_lines(const TopSnapshot& shot, const TopLook& look);

// One object, and a line end.
std::string top_json(const TopSnapshot& shot, TopOrder order);

}  // namespace carillon::cli
