// Three nodes on a ModelLog: in turn they read, run commands, send, and are answered, on a clock
// that the test moves on. Nodes are held up, die and flush when the seed says so. Every reply is
// judged when it leaves.
//
//   SimulatedCluster cluster(Writes::kConditional, seed);
//   cluster.run(15'000);        // ms of troubles
//   cluster.time_to_serve()     // how long until a command is acknowledged, once they end
//   cluster.fault()             // empty, or what went wrong
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "cluster/model_log.h"
#include "cluster/role.h"

namespace carillon::cluster::model {

class SimulatedCluster {
 public:
  static constexpr std::size_t kNodes = 3;

  // `broken`: a rule that all nodes break.
  SimulatedCluster(Writes writes, std::uint64_t seed, Rule broken = Rule::kNone);

  void run(Millis ms);

  // Returns how long it takes, without new troubles, until a command is acknowledged; at least a
  // minute if none is.
  Millis time_to_serve();

  // The log loses all after `last`, and all connections to it break.
  void cut(Position last);

  // Returns true if all nodes, without new troubles and commands, come to the same state.
  bool all_alike();

  const ModelLog& log() const { return log_; }
  std::size_t acknowledged() const { return acknowledged_; }
  // The first thing that went wrong: what is violated, or why a node has stopped.
  const std::string& fault() const { return fault_; }
  std::size_t take_overs() const { return take_overs_; }

 private:
  struct State {
    Mark mark;
    std::uint64_t serial = 0;  // Stored::serial of the entry at the mark
    Commands commands;
  };
  struct Reply {
    std::uint32_t command;
    std::size_t known;  // known_ when the command ran
  };
  struct Node {
    std::optional<Role> role;
    State state;  // as far as its mark
    State flushed;
    Commands engine;                       // ran, and do not count yet
    std::multimap<Ticket, Reply> replies;  // that wait
    Position cursor = 0;
    bool begun = false;
    Millis last_turn = 0;
    Millis held_until = 0;
  };
  // No new troubles while it lives.
  class Calm;

  void violated(const std::string& what);
  bool in(unsigned per_thousand) { return !calm_ && random_() % 1'000 < per_thousand; }

  void start(std::size_t n);
  static void reopen(Node& node);
  void turn(std::size_t n);
  void command(std::size_t n);
  void answered(std::size_t n, const Answer& answer);
  void read(std::size_t n);
  void count(Node& node, Position position);
  void obey(std::size_t n, const Actions& actions);
  void release(Node& node, Ticket up_to);

  Writes writes_;
  Rule broken_;
  std::mt19937_64 random_;
  ModelLog log_;
  std::array<Node, kNodes> nodes_;
  bool calm_ = false;
  bool quiet_ = false;  // no commands
  Millis now_ = 0;
  std::uint64_t starts_ = 0;
  std::uint32_t commands_ = 0;
  std::size_t acknowledged_ = 0;
  std::string fault_;
  std::size_t take_overs_ = 0;
  Commands history_;       // what some node has accepted
  std::size_t known_ = 0;  // this many of them were acknowledged, or came before one that was
};

}  // namespace carillon::cluster::model
