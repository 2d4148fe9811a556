// Takes all steps in all orders, breadth first, until nothing new is found or something is
// violated.
//
//   Model model{.writes = Writes::kUnconditional, .bounds = {.crashes = 1}};
//   const Found found = explore(model);
//   found.worlds      // different ones
//   found.fault       // empty, or what is violated; found.story tells by which steps
//
// The story is one of the shortest. Every world is kept in full, not as a hash, so nothing is
// passed over by chance. Two things are left out because they find nothing new. Nodes that have
// done nothing yet are alike, so they begin in the order of their names. And no other node notices
// what a node does alone (it reads, flushes, gets an answer), so the order of such steps of
// different nodes does not matter: a node takes them just before a step that is noticed.
#pragma once

#include <cstddef>
#include <string>

#include "cluster/world.h"

namespace carillon::cluster::explorer {

struct Found {
  std::size_t worlds = 0;
  std::size_t steps = 0;
  std::size_t beyond = 0;  // steps that the bounds forbid
  std::size_t depth = 0;   // the longest of the shortest ways, in noticed steps
  bool complete = false;
  std::string fault;
  std::string story;
};

// Ends incomplete once there are more than `most` worlds.
Found explore(Model& model, std::size_t most = 100'000'000);

}  // namespace carillon::cluster::explorer
