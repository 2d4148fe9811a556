// What the explorer tries: bounds that are small enough to be tried in full. Each scope has three
// nodes, and two commands, three claims and three windows unless its line has another number. Any
// node may be paused, and any message be late, for any time.
#pragma once

#include "cluster/world.h"

namespace carillon::cluster::explorer {

struct Scope {
  const char* name;
  Bounds bounds;
  Cut cut = Cut::kNoticed;
};

// In each run of the tests.
inline constexpr Scope kScopes[] = {
    {"Unknown", {.unknown = 2}},
    {"Crash", {.crashes = 1, .flushes = 1}},
    {"Repeat", {.repeats = 1}},
    {"Unavailable", {.unavailable = 1, .beats = 1}},
    {"BadClock", {.bad_clocks = 1}},
    {"Cut", {.claims = 2, .cuts = 1}},
    {"SilentCut", {.claims = 2, .cuts = 1}, Cut::kSilent},
};

// With cluster_explorer --wide: 1 to 5 million worlds each, and more in the last ones; a world
// takes 200 bytes of memory. The search ends, and says so, at 100 million.
inline constexpr Scope kWideScopes[] = {
    {"CrashAndUnknown", {.crashes = 1, .unknown = 1, .flushes = 1}},
    {"CrashAndRepeat", {.crashes = 1, .repeats = 1, .flushes = 1}},
    {"RepeatAndUnknown", {.repeats = 1, .unknown = 1}},
    {"CutOfThreeClaims", {.cuts = 1}},
    {"SilentCutOfThreeClaims", {.cuts = 1}, Cut::kSilent},
    {"CutAndRepeat", {.claims = 2, .repeats = 1, .cuts = 1}},
    {"CutAndCrash", {.claims = 2, .crashes = 1, .flushes = 1, .cuts = 1}},
};

}  // namespace carillon::cluster::explorer
