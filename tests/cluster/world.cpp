#include "cluster/world.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>

#include "cluster/entries.h"
#include "cluster/history.h"

namespace carillon::cluster::explorer {
namespace {

using Kind = Step::Kind;

constexpr LogId kLog{1, 1};

// Node::call.
constexpr std::uint8_t kNoCall = 0;
constexpr std::uint8_t kWaits = 1;
constexpr std::uint8_t kRefused = 2;
constexpr std::uint8_t kTaken = 3;  // plus the position; plus 0: the log has the claim already

Owner owner_of(std::size_t node, unsigned starts) {
  return {node + 1, starts + 1U};
}

Role new_role(const Model& model, std::size_t node, unsigned starts, const Mark& flushed) {
  Role role({.me = owner_of(node, starts), .writes = model.writes, .broken = model.broken},
            flushed);
  role.measured(0);
  return role;
}

void add_message(World& world, Message message) {
  const auto end = world.net.begin() + world.messages;
  const auto place = std::upper_bound(world.net.begin(), end, message);
  std::move_backward(place, end, end + 1);
  *place = message;
  ++world.messages;
}

void remove_message(World& world, std::size_t at) {
  std::move(world.net.begin() + static_cast<std::ptrdiff_t>(at) + 1,
            world.net.begin() + world.messages,
            world.net.begin() + static_cast<std::ptrdiff_t>(at));
  world.net[--world.messages] = {};
}

// The node no longer waits for the answer to its message.
void end_call(World& world, std::size_t node) {
  world.nodes[node].call = kNoCall;
  world.nodes[node].called = 0;
  for (std::size_t i = 0; i < world.messages; ++i) {
    if (world.net[i].waits != node + 1) continue;
    Message message = world.net[i];
    remove_message(world, i);
    message.waits = 0;
    return add_message(world, message);
  }
}

void forget_commands(World& world, std::size_t node) {
  world.nodes[node].engine = 0;
  for (Command& command : world.commands) {
    if (command.state == Command::kRan && command.node == node) {
      command = {.state = Command::kForgotten};
    }
  }
}

void reopen(const Model& model, Node& node) {
  node.applied = node.flushed_applied;
  node.orphan = node.flushed_orphan;
  node.begun = 0;
  node.cursor = static_cast<std::uint8_t>(model.marks[node.flushed].position);
}

std::string letter(std::size_t node) {
  return std::string(1, static_cast<char>('A' + node));
}

std::string text(const Sent& sent) {
  std::string text = (is_claim(sent.entry) ? "claim" : "window") + std::string("(epoch ") +
                     std::to_string(sent.entry.epoch) + ", " + letter(sent.entry.owner.high - 1) +
                     std::to_string(sent.entry.owner.low) + ", from change " +
                     std::to_string(sent.entry.first);
  if (!is_claim(sent.entry) && sent.commands == 0) text += ", empty";
  for (unsigned i = 0; i < kMostCommands; ++i) {
    if ((sent.commands >> i & 1) != 0) text += ", command " + std::to_string(i + 1);
  }
  return text + ")";
}

// Carries out one step.
class Move {
 public:
  Move(Model& model, World& world, std::string* story)
      : model_(model), world_(world), story_(story) {}

  Outcome take(const Step& step) {
    switch (step.kind) {
      case Kind::kArrive:
      case Kind::kArriveTwice:
        arrive(step.of, step.kind == Kind::kArriveTwice);
        break;
      case Kind::kCut:
        cut(step.of);
        break;
      default:
        of_node(step);
    }
    if (story_ != nullptr) *story_ += "\n";
    return outcome_;
  }

 private:
  void of_node(const Step& step) {
    n_ = step.of;
    node().touched = 1;
    role_ = model_.roles[node().role];
    tell(letter(n_) + ": ");
    switch (step.kind) {
      case Kind::kRun:
        run();
        break;
      case Kind::kTime:
        time();
        break;
      case Kind::kBegin:
        begin();
        break;
      case Kind::kRead:
        read();
        break;
      case Kind::kAnswer:
        answer();
        break;
      case Kind::kUnknown:
        unknown();
        break;
      case Kind::kUnavailable:
        unavailable();
        break;
      case Kind::kCrash:
        crash();
        break;
      case Kind::kFlush:
        flush();
        break;
      default:
        bad_clock();
    }
    if (node().engine != 0 && !role_->owns()) {
      violated("the state of a follower has what its log has not");
    }
    // The step of the measurement includes the drop.
    if (node().clock_off != 0 && role_->owns()) violated("a node whose clock is off owns");
    node().role = static_cast<std::uint32_t>(model_.roles.index(*role_));
  }

  void run() {
    const std::size_t c = world_.ran++;
    tell("command " + std::to_string(c + 1) + " runs");
    const Reading now = history(model_, world_).counting;
    const bool deposed = is_deposed(now, n_);
    const Commands known = node().applied | node().engine | world_.lost;
    world_.commands[c] = {.state = Command::kRan,
                          .node = static_cast<std::uint8_t>(n_),
                          .ticket = static_cast<std::uint8_t>(role_->ticket()),
                          .stale = deposed || (acknowledged() & ~known) != 0};
    node().engine |= static_cast<Commands>(1 << c);
    obey(role_->ran());
  }

  void time() {
    const Millis ms = role_->next_wakeup().value();
    tell("after " + std::to_string(ms) + " ms");
    const Actions actions = role_->passed(ms);
    const bool beats = actions.append && actions.append->kind == Entry::Kind::kWindow;
    if (beats && node().engine == 0) count(world_.beats, model_.bounds.beats);
    obey(actions);
  }

  void begin() {
    tell("begins to follow");
    const Position position = role_->mark().position;
    const Place place = node().orphan == 0          ? Place::kThere
                        : position > world_.entries ? Place::kEndsBefore
                                                    : Place::kAnother;
    node().cursor = static_cast<std::uint8_t>(position);
    node().begun = 1;
    obey(role_->found(kLog, place));
  }

  void read() {
    const std::size_t at = node().cursor++;
    const Index index = world_.log[at];
    const Sent& sent = model_.sent[index];
    if (story_ != nullptr) tell("reads " + text(sent));
    const Entry entry = found_at(at + 1, role_->mark().chain, sent.entry, sent.content());
    const Actions actions = role_->read(entry);
    const bool accepts = role_->mark().position == entry.position;
    tell(accepts ? "" : actions.stop ? "" : " and ignores it");
    if (!actions.stop) judge(sent, at, accepts);
    if (accepts) accept(index);
    obey(actions);
  }

  // The node must accept this entry if it counts in the log's history, and ignore it otherwise.
  void judge(const Sent& sent, std::size_t at, bool accepts) {
    const bool counts = (history(model_, world_).accepted >> at & 1) != 0;
    if (is_silent()) {
      // A node that has read a claim that was cut off takes the owner before this claim for a
      // deposed one.
      const bool skipped = counts && !accepts && (sent.commands & ~node().applied) != 0;
      if (skipped && sent.entry.epoch >= role_->mark().epoch) violated("a window is skipped");
    } else if (accepts != counts) {
      violated(accepts ? "an entry is accepted that does not count" : "an entry is skipped");
    }
  }

  void accept(Index index) {
    const Sent& sent = model_.sent[index];
    if (is_claim(sent.entry)) return;
    if ((node().applied & sent.commands) != 0) violated("a command is applied twice");
    node().applied |= sent.commands;
    node().engine &= static_cast<Commands>(~sent.commands);
    if (node().applied != sent.result) {
      violated("the state after a window is not the state of its writer");
    }
  }

  void answer() {
    const std::uint8_t call = node().call;
    const Index called = node().called;
    end_call(world_, n_);
    if (call == kRefused) {
      tell("is told that the log has refused " + text(model_.sent[called]));
      return obey(role_->failed(Failure::kRefused));
    }
    const Sent& sent = model_.sent[called];
    tell("is told that the log has taken " + text(sent));
    const Position position = call - kTaken;
    const Chain before = role_->mark().chain;
    const Entry entry = found_at(position, before, sent.entry, sent.content());
    const Actions actions = role_->committed(entry);
    if (role_->mark().chain != before) {
      judge(sent, position - 1, true);
      accept(called);
      node().cursor = static_cast<std::uint8_t>(std::max<Position>(node().cursor, position));
    }
    obey(actions);
  }

  void unknown() {
    tell("does not know whether the log has taken " + text(model_.sent[node().called]));
    ++world_.unknown;
    end_call(world_, n_);
    obey(role_->failed(Failure::kUnknown));
  }

  void unavailable() {
    tell("could not send " + text(model_.sent[node().called]));
    ++world_.unavailable;
    for (std::size_t i = 0; i < world_.messages; ++i) {
      if (world_.net[i].waits == n_ + 1) remove_message(world_, i--);
    }
    end_call(world_, n_);
    obey(role_->failed(Failure::kUnavailable));
  }

  void crash() {
    tell("dies and starts again");
    ++world_.crashes;
    forget_commands(world_, n_);
    end_call(world_, n_);
    reopen(model_, node());
    role_ = new_role(model_, n_, ++node().starts, model_.marks[node().flushed]);
    node().clock_off = 0;
  }

  void flush() {
    tell("flushes its state");
    ++world_.flushes;
    node().flushed = static_cast<Index>(model_.marks.index(role_->mark()));
    node().flushed_applied = node().applied;
    node().flushed_orphan = node().orphan;
  }

  void bad_clock() {
    tell("finds that its clock is off");
    ++world_.bad_clocks;
    node().clock_off = 1;
    obey(role_->measured(501));
  }

  void arrive(std::size_t at, bool again) {
    const Message message = world_.net[at];
    const Sent& sent = model_.sent[message.entry];
    remove_message(world_, at);
    if (again) {
      ++world_.repeats;
      add_message(world_, {.entry = message.entry});
    }
    if (story_ != nullptr) tell("the log gets " + text(sent));
    const std::uint8_t answer = take_entry(message.entry);
    if (message.waits == 0) return;
    world_.nodes[message.waits - 1U].call = answer;
  }

  // Returns the log's answer, a value of Node::call.
  std::uint8_t take_entry(Index index) {
    const Entry& entry = model_.sent[index].entry;
    if (model_.writes == Writes::kConditional && !takes(entry)) {
      const Reading now = history(model_, world_).stored;
      const bool mine = entry.epoch == now.epoch && entry.owner == now.owner;
      if (is_claim(entry) && mine) return kTaken;
      tell(" and refuses it");
      return kRefused;
    }
    if (world_.entries == kMostEntries) {
      outcome_.beyond = true;
      return kRefused;
    }
    world_.log[world_.entries++] = index;
    return static_cast<std::uint8_t>(kTaken + world_.entries);
  }

  bool takes(const Entry& entry) const {
    const Reading now = history(model_, world_).stored;
    if (is_claim(entry)) return entry.epoch == now.epoch + 1;
    switch (model_.log_fault) {
      case LogFault::kNone:
        return entry.before == now.chain;
      case LogFault::kNumberAlone:
        return entry.first == now.next;
      case LogFault::kNumberAndEpoch:
        return entry.first == now.next && entry.epoch == now.epoch;
      default:
        return entry.first == now.next && entry.epoch == now.epoch && entry.owner == now.owner;
    }
  }

  void cut(std::size_t entries) {
    tell("THE LOG LOSES ITS END, from entry " + std::to_string(entries + 1));
    ++world_.cuts;
    world_.was_cut = 1;
    for (std::size_t i = entries; i < world_.entries; ++i) world_.log[i] = 0;
    world_.entries = static_cast<std::uint8_t>(entries);
    world_.lost |= static_cast<Commands>(acknowledged() & ~history(model_, world_).commands);
    for (Node& node : world_.nodes) {
      if (model_.roles[node.role].mark().position > entries) node.orphan = 1;
      if (model_.marks[node.flushed].position > entries) node.flushed_orphan = 1;
    }
    if (is_silent()) return;
    const Reading now = history(model_, world_).counting;
    for (Command& command : world_.commands) {
      if (command.stale != 0) command.stale = is_deposed(now, command.node);
    }
    for (Node& node : world_.nodes) {
      node.begun = 0;
      // The answer is lost with the connection. (If it had arrived before the cut, replies would
      // have left that nobody can take back.)
      if (node.call >= kTaken) node.call = kWaits;
    }
  }

  void obey(const Actions& actions) {
    if (actions.release > 0) release(actions.release);
    if (actions.stop) {
      tell(", and stops: " + actions.line);
      if (world_.was_cut == 0) violated("a node stops, and the log has lost nothing");
      forget_commands(world_, n_);
    }
    if (actions.drop) {
      tell(", and drops its engine: " + actions.line);
      forget_commands(world_, n_);
      reopen(model_, node());
      role_->reopened(model_.marks[node().flushed]);
    }
    if (actions.serve) tell(", and owns the shard");
    if (actions.append) append(*actions.append);
  }

  void append(const Entry& entry) {
    Sent sent{.entry = entry};
    if (is_claim(sent.entry)) {
      count(world_.claims, model_.bounds.claims);
    } else {
      count(world_.windows, model_.bounds.windows);
      sent.commands = node().engine;
      sent.result = node().applied | node().engine;
    }
    if (outcome_.beyond) return;
    if (world_.messages == kMostMessages) {
      outcome_.beyond = true;
      return;
    }
    outcome_.seen = true;
    if (story_ != nullptr) tell(", and sends " + text(sent));
    node().called = static_cast<Index>(model_.sent.index(sent));
    node().call = kWaits;
    add_message(world_, {.entry = node().called, .waits = static_cast<std::uint8_t>(n_ + 1)});
  }

  void release(Ticket up_to) {
    const Commands counting = history(model_, world_).commands;
    for (std::size_t c = 0; c < world_.ran; ++c) {
      Command& command = world_.commands[c];
      const bool leaves = command.state == Command::kRan && command.node == n_;
      if (!leaves || command.ticket > up_to) continue;
      tell(", and answers command " + std::to_string(c + 1));
      if (!is_silent()) {
        if ((counting >> c & 1) == 0) violated("what was acknowledged is not in the log");
        if (command.stale != 0) violated("a deposed node answers");
        if ((node().applied & ~counting) != 0) {
          violated("a node answers from a state that the log has lost");
        }
      }
      command = {.state = Command::kAcknowledged};
      outcome_.seen = true;
    }
  }

  Commands acknowledged() const {
    Commands all = 0;
    for (std::size_t c = 0; c < world_.ran; ++c) {
      if (world_.commands[c].state == Command::kAcknowledged) all |= static_cast<Commands>(1 << c);
    }
    return all;
  }

  // Returns true if another node owns the shard, in an epoch that `n` has not seen end.
  bool is_deposed(const Reading& now, std::size_t n) const {
    const Node& node = world_.nodes[n];
    return now.epoch >= model_.roles[node.role].mark().epoch &&
           now.owner != owner_of(n, node.starts) && now.owner != Owner{};
  }

  bool is_silent() const { return world_.was_cut != 0 && model_.cut == Cut::kSilent; }
  Node& node() { return world_.nodes[n_]; }
  void count(std::uint8_t& used, unsigned most) {
    if (++used > most) outcome_.beyond = true;
  }
  void violated(std::string_view what) {
    if (outcome_.fault.empty()) outcome_.fault = what;
  }
  void tell(const std::string& what) {
    if (story_ != nullptr) *story_ += what;
  }

  Model& model_;
  World& world_;
  std::string* story_;
  std::size_t n_ = 0;
  std::optional<Role> role_;
  Outcome outcome_;
};

}  // namespace

World first_world(Model& model) {
  static_assert(std::has_unique_object_representations_v<World>);
  World world{};
  model.sent.index({});  // so that index 0 is no entry
  for (std::size_t n = 0; n < kNodes; ++n) {
    Node& node = world.nodes[n];
    node.flushed = static_cast<Index>(model.marks.index({.log = kLog}));
    Role role = new_role(model, n, 0, model.marks[node.flushed]);
    role.found(kLog, Place::kThere);
    node.role = static_cast<std::uint32_t>(model.roles.index(role));
    node.begun = 1;
  }
  return world;
}

std::vector<Step> steps_of(const Model& model, const World& world, std::size_t n) {
  const Bounds& bounds = model.bounds;
  const Node& node = world.nodes[n];
  const Role& role = model.roles[node.role];
  std::vector<Step> all;
  const auto add = [&all, n](Kind kind, bool may) {
    if (may) all.push_back({kind, static_cast<std::uint8_t>(n)});
  };
  // Nodes that have done nothing yet are alike: the first of them goes on for all.
  if (node.touched == 0 && n > 0 && world.nodes[n - 1].touched == 0) return all;
  if (role.phase() == Role::Phase::kStopped) return all;
  add(Kind::kRun, role.accepts_commands() && world.ran < bounds.commands);
  add(Kind::kTime, role.next_wakeup().has_value());
  add(Kind::kBegin, node.begun == 0);
  add(Kind::kRead, node.begun != 0 && node.cursor < world.entries);
  add(Kind::kAnswer, node.call > kWaits);
  add(Kind::kUnknown, node.call != kNoCall && world.unknown < bounds.unknown);
  add(Kind::kUnavailable, node.call == kWaits && world.unavailable < bounds.unavailable);
  add(Kind::kCrash, world.crashes < bounds.crashes);
  add(Kind::kFlush, world.flushes < bounds.flushes && model.marks[node.flushed] != role.mark());
  add(Kind::kBadClock, world.bad_clocks < bounds.bad_clocks);
  return all;
}

std::vector<Step> steps_of_log(const Model& model, const World& world) {
  const Bounds& bounds = model.bounds;
  std::vector<Step> all;
  const auto add = [&all](Kind kind, std::size_t of) {
    all.push_back({kind, static_cast<std::uint8_t>(of)});
  };
  for (std::size_t i = 0; i < world.messages; ++i) {
    if (i > 0 && world.net[i] == world.net[i - 1]) continue;
    add(Kind::kArrive, i);
    if (world.repeats < bounds.repeats) add(Kind::kArriveTwice, i);
  }
  for (std::size_t i = 0; i < world.entries && world.cuts < bounds.cuts; ++i) add(Kind::kCut, i);
  return all;
}

Outcome take(Model& model, const Step& step, World& world, std::string* story) {
  return Move(model, world, story).take(step);
}

}  // namespace carillon::cluster::explorer
