// What the entries of the log mean, computed from its start without the rules of a Role.
#pragma once

#include <cstdint>

#include "cluster/role.h"
#include "cluster/world.h"

namespace carillon::cluster::explorer {

// How far a reader has come.
struct Reading {
  Epoch epoch = 0;
  Owner owner = {};
  LogNumber next = 1;
  Chain chain = {};

  void add(const Sent& sent);
};

struct History {
  Reading counting;            // the entries that count: what every reader accepts
  Reading stored;              // all entries: what a log with conditional writes compares with
  Commands commands = 0;       // those that count
  std::uint32_t accepted = 0;  // a bit for each entry that counts
  bool broken = false;         // a reader stops here
};
History history(const Model& model, const World& world);

}  // namespace carillon::cluster::explorer
