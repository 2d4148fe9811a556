// A history read from bytes: what a fuzzer, or a random stream, makes a set do, with each answer
// held against the Oracle.
#pragma once

#include <cstdint>
#include <span>

#include "wheel/any_set.h"

namespace carillon::testing {

// Plays `bytes`, of any content and length, on a new set, and drains it. The first three say where
// time starts and how many timers there are; each of the others is a call, or what it is called
// with. Callbacks, and destructors of payloads, take theirs from the same stream: they call the set
// again, fail to nest advance() and clear(), replace objects, and throw. The invariants are checked
// after each call, inside callbacks too. Throws std::runtime_error or std::logic_error that says
// which contract was broken.
void play(std::span<const std::uint8_t> bytes, const AnySetMaker& maker);

}  // namespace carillon::testing
