// The roster of a benchmark: its contestants, in the order of the tables. Each system enters itself
// before main() begins, from a source file of its own.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace carillon::bench {

// The contestants, in ascending order of `int Contestant::rank`.
template <class Contestant>
std::vector<Contestant>& roster() {
  static std::vector<Contestant> all;
  return all;
}

template <class Contestant>
void enter(Contestant contestant) {
  auto& all = roster<Contestant>();
  const auto position = std::find_if(all.begin(), all.end(),
                                     [&](const auto& each) { return each.rank > contestant.rank; });
  all.insert(position, std::move(contestant));
}

}  // namespace carillon::bench
