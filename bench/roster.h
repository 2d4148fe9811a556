// The roster of a bench: its contestants, in the order of the tables. The systems enter themselves
// before main() begins, each from a file of its own.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace carillon::bench {

// A Contestant has an `int rank`: its place.
template <class Contestant>
std::vector<Contestant>& roster() {
  static std::vector<Contestant> all;
  return all;
}

template <class Contestant>
void enter(Contestant contestant) {
  auto& all = roster<Contestant>();
  const auto place = std::find_if(all.begin(), all.end(),
                                  [&](const auto& each) { return each.rank > contestant.rank; });
  all.insert(place, std::move(contestant));
}

}  // namespace carillon::bench
