// How `carillon top` shows a snapshot: as lines of text, or as JSON.
//
//   for (const std::string& line : top_lines(shot, {.columns = 80, .rows = 24})) print(line);
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/top_source.h"

namespace carillon::cli {

// By which column tubes are sorted: the largest first, names from A.
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
  // What is wrong at present: the last line but one of the head shows it.
  std::string trouble = {};
};

// Each line has at most so many columns; the names of tubes are cut where they do not fit.
std::vector<std::string> top_lines(const TopSnapshot& shot, const TopLook& look);

// One object, and a line end.
std::string top_json(const TopSnapshot& shot, TopOrder order);

}  // namespace carillon::cli
