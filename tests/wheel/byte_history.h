// A history read from bytes: a fuzzer, or a random stream, says which calls are made on a set. Each
// answer is checked against the Oracle.
#pragma once

#include <cstdint>
#include <span>

#include "wheel/any_set.h"

namespace carillon::testing {

// Plays `bytes`, of any content and length, on a new set, and drains the set. The first three bytes
// are the tick at which time starts and the number of timers. Each of the others is a call or an
// argument. Callbacks, and destructors of payloads, read from the same stream: they call the set
// again, try to nest advance() and clear(), replace objects, and throw. The invariants are checked
// after each call, inside callbacks too. If a contract is broken, throws std::runtime_error or
// std::logic_error that says which.
void play(std::span<const std::uint8_t> bytes, const AnySetMaker& maker);

}  // namespace carillon::testing
