// A small world for the explorer: three nodes with the real Role, a model of the shared log, and
// the network between them. Each step is one event that could happen next. The order of the
// steps is all that there is of time, pauses and delays. After each step the world is judged.
//
//   Model model{.bounds = {.crashes = 1}};
//   const World world = first_world(model);
//   for (const Step& step : steps_of(model, world, 0)) {   // what the first node could do
//     World next = world;
//     const Outcome outcome = take(model, step, next);
//     if (!outcome.fault.empty()) std::puts(outcome.fault.c_str());   // what is violated
//   }
//
// A paused node takes no step; a lost message never arrives; a delayed one arrives after others. At
// any moment a node may find that it has heard nothing for too long.
//
// What is judged:
//   - accepted once, in order: each entry is accepted or ignored by every node as the log's own
//     history says, which history.h computes without a Role; no command is applied twice; after a
//     window, a node has the same state as the node that wrote the window.
//   - nothing acknowledged is lost: a command whose reply has left is in that history, and stays in
//     it; and an owner's reply knows all that was acknowledged before its command ran.
//   - nobody deposed answers: no reply leaves for a command that ran after another node's claim was
//     in the log.
//   - a node whose clock is off does not own the shard.
//   - a node stops only if the log was cut.
// A command both reads and writes: its reply tells what the state was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/role.h"
#include "cluster/table.h"

namespace carillon::cluster::explorer {

inline constexpr std::size_t kNodes = 3;
inline constexpr std::size_t kMostEntries = 14;
inline constexpr std::size_t kMostMessages = 8;
inline constexpr std::size_t kMostCommands = 4;

// Whether a node notices that the log has lost its end.
enum class Cut : std::uint8_t {
  kNoticed,  // each reader's connection breaks, so that it begins again
  kSilent,   // nobody notices until the next start
};

// What a log with conditional writes compares before it takes a window.
enum class LogFault : std::uint8_t {
  kNone,  // the chain, as it must
  kNumberAlone,
  kNumberAndEpoch,
  kNumberEpochOwner,
};

// How much may happen in a history.
struct Bounds {
  unsigned commands = 2;
  unsigned claims = 3;   // sent by nodes
  unsigned windows = 3;  // sent by nodes, with beats and with changes sent again in a new epoch
  unsigned crashes = 0;
  unsigned repeats = 0;      // messages that arrive twice
  unsigned unavailable = 0;  // messages that were not sent, and the node knows it
  unsigned unknown = 0;      // calls that end without an answer
  unsigned beats = 0;
  unsigned flushes = 0;
  unsigned cuts = 0;
  unsigned bad_clocks = 0;
};

struct Step {
  enum class Kind : std::uint8_t {
    kRun,          // a command runs at the node
    kTime,         // the node's time passes until it has something to do
    kBegin,        // it begins to follow
    kRead,         // it reads the next entry
    kArrive,       // a message arrives at the log
    kArriveTwice,  // the same, and it will arrive again
    kAnswer,       // the log's answer arrives at the node
    kUnknown,      // the node's call ends, and it does not know how
    kUnavailable,  // the node's message was not sent
    kCrash,        // the node dies and starts again
    kFlush,        // the node flushes its state
    kBadClock,     // its clock is found to be off
    kCut,          // the log ends before entry `of`
  };
  Kind kind = Kind::kRun;
  std::uint8_t of = 0;  // the node, the message or the entry
};

// A set of commands, a bit for each.
using Commands = std::uint8_t;
// The index of a value in a Table.
using Index = std::uint16_t;

// A world is made of small numbers, so that equal worlds have equal bytes.
struct Node {
  std::uint32_t role = 0;           // in Model::roles
  Index flushed = 0;                // in Model::marks
  Index called = 0;                 // the entry that it has sent
  std::uint8_t call = 0;            // Call
  std::uint8_t cursor = 0;          // entries read
  std::uint8_t begun = 0;           // it follows the log as it is
  std::uint8_t orphan = 0;          // some of what it has read was cut off
  std::uint8_t flushed_orphan = 0;  // some of what its flushed state has read was cut off
  Commands applied = 0;             // in its state, as far as its mark
  Commands flushed_applied = 0;
  Commands engine = 0;  // ran here, and do not count yet
  std::uint8_t starts = 0;
  std::uint8_t touched = 0;    // it has taken a step
  std::uint8_t clock_off = 0;  // as its last measurement said
  std::uint8_t unused = 0;
};

struct Message {
  Index entry = 0;
  std::uint8_t waits = 0;  // 1 + the node that waits for an answer; 0: none
  std::uint8_t unused = 0;
  friend auto operator<=>(const Message&, const Message&) = default;
};

struct Command {
  enum State : std::uint8_t { kNotYet, kRan, kAcknowledged, kForgotten };
  std::uint8_t state = kNotYet;
  std::uint8_t node = 0;
  std::uint8_t ticket = 0;
  // When it ran, its node was deposed, or did not know all that was acknowledged.
  std::uint8_t stale = 0;
};

struct World {
  std::array<Node, kNodes> nodes;
  std::array<Index, kMostEntries> log;
  std::array<Message, kMostMessages> net;
  std::array<Command, kMostCommands> commands;
  std::uint8_t entries = 0;
  std::uint8_t messages = 0;
  Commands lost = 0;  // acknowledged, and cut off the log
  std::uint8_t was_cut = 0;
  // How much of each bound is used up.
  std::uint8_t ran = 0, claims = 0, windows = 0, crashes = 0, repeats = 0, unavailable = 0,
               unknown = 0, beats = 0, flushes = 0, cuts = 0, bad_clocks = 0, unused = 0;
};

// An entry as it was sent.
struct Sent {
  Entry entry;
  Commands commands = 0;  // in this window
  Commands result = 0;    // in the state of its writer, with this window

  std::uint64_t content() const { return commands << 8U | result; }
  friend bool operator==(const Sent&, const Sent&) = default;
};

struct Model {
  Writes writes = Writes::kConditional;
  Bounds bounds = {};
  Cut cut = Cut::kNoticed;
  Rule broken = Rule::kNone;
  LogFault log_fault = LogFault::kNone;

  Table<Role> roles = {};
  Table<Mark> marks = {};
  Table<Sent> sent = {};
};

World first_world(Model& model);
// Returns the steps of one node that could come next.
std::vector<Step> steps_of(const Model& model, const World& world, std::size_t node);
// Returns all others: messages that arrive, and cuts.
std::vector<Step> steps_of_log(const Model& model, const World& world);

struct Outcome {
  bool beyond = false;  // the step would go beyond the bounds
  bool seen = false;    // others may notice it: something was sent, or a reply has left
  std::string fault;    // what is violated; empty: nothing
};
// Takes the step. `story`, if any, gets a line that tells the step, and what the node did.
Outcome take(Model& model, const Step& step, World& world, std::string* story = nullptr);

}  // namespace carillon::cluster::explorer
