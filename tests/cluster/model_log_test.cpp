#include "cluster/model_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "wheel/seeds.h"

namespace carillon::cluster::model {
namespace {

constexpr std::size_t kNodes = 3;

// Three nodes on a model log, on a clock that the test moves on. Nodes are held up, die, and flush
// when the seed says so. Every reply is judged when it leaves.
class Cluster {
 public:
  Cluster(Writes writes, std::uint64_t seed, Rule broken = Rule::kNone)
      : writes_(writes), broken_(broken), random_(seed), log_(writes, kNodes, seed + 1) {
    for (std::size_t n = 0; n < kNodes; ++n) start(n);
  }

  void run(Millis ms) {
    for (const Millis end = now_ + ms; now_ < end;) {
      const Millis step = 1 + random_() % 40;
      now_ += step;
      log_.pass(step);
      for (std::size_t n = 0; n < kNodes; ++n) turn(n);
    }
  }

  // Without new troubles a command is acknowledged within this time.
  Millis time_to_serve() {
    log_.calm(true);
    calm_ = true;
    for (Node& node : nodes_) node.held_until = 0;
    const Millis start = now_;
    const std::size_t before = acknowledged_;
    while (acknowledged_ == before && now_ - start < 60'000) run(1);
    log_.calm(false);
    calm_ = false;
    return now_ - start;
  }

  // The log loses its end, and all connections to it break.
  void cut(Position last) {
    log_.cut(last);
    for (std::size_t n = 0; n < kNodes; ++n) nodes_[n].begun = false;
  }

  // Without new troubles all nodes come to the same state. (An owner may be ahead of the others.)
  bool all_alike() {
    log_.calm(true);
    calm_ = true;
    quiet_ = true;
    run(4'000);
    quiet_ = calm_ = false;
    log_.calm(false);
    return std::all_of(std::begin(nodes_), std::end(nodes_),
                       [this](const Node& node) { return node.state.commands == history_; });
  }

  const ModelLog& log() const { return log_; }
  std::size_t acknowledged() const { return acknowledged_; }
  // The first thing that went wrong: what is violated, or why a node has stopped.
  const std::string& fault() const { return fault_; }
  std::size_t take_overs() const { return take_overs_; }

 private:
  struct State {
    Mark mark;
    std::uint64_t serial = 0;
    Commands commands;
  };
  struct Reply {
    std::uint32_t command;
    std::size_t known;  // this many commands were acknowledged, or came before one, when it ran
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

  void fault(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  bool in(unsigned per_thousand) { return !calm_ && random_() % 1'000 < per_thousand; }

  void start(std::size_t n) {
    Node& node = nodes_[n];
    log_.forget_call(n);
    node.role.emplace(Role::Seat{.me = {n + 1, ++starts_},
                                 .writes = writes_,
                                 .before_me = static_cast<unsigned>(n),
                                 .broken = broken_},
                      node.flushed.mark);
    node.role->measured(0);
    reopen(node);
    node.last_turn = now_;
  }

  static void reopen(Node& node) {
    node.engine.clear();
    node.replies.clear();
    node.state = node.flushed;
    node.begun = false;
  }

  void turn(std::size_t n) {
    Node& node = nodes_[n];
    if (node.held_until > now_ || node.role->phase() == Role::Phase::kStopped) return;
    if (in(2)) node.held_until = now_ + random_() % 8'000;
    if (in(1)) return start(n);
    if (in(1)) node.begun = false;
    obey(n, node.role->passed(now_ - std::exchange(node.last_turn, now_)));
    if (!node.begun) {
      node.begun = true;
      node.cursor = node.role->mark().position;
      obey(n, node.role->found(ModelLog::kId, log_.place_of(node.cursor, node.state.serial)));
    }
    if (const auto answer = log_.answer(n)) answered(n, *answer);
    for (std::size_t left = random_() % 4; left > 0 && node.begun && node.cursor < log_.size();
         --left) {
      read(n);
    }
    if (node.role->accepts_commands() && !quiet_ && (calm_ || random_() % 4 == 0)) command(n);
    if (in(10)) node.flushed = node.state;
  }

  void command(std::size_t n) {
    Node& node = nodes_[n];
    node.engine.push_back(++commands_);
    node.replies.emplace(node.role->ticket(), Reply{commands_, known_});
    obey(n, node.role->ran());
  }

  void answered(std::size_t n, const Answer& answer) {
    Node& node = nodes_[n];
    if (answer.failure) return obey(n, node.role->failed(*answer.failure));
    const Chain before = node.role->mark().chain;
    const Actions actions = node.role->committed(answer.entry);
    if (node.role->mark().chain != before) {
      count(node, answer.entry.position);
      node.cursor = answer.entry.position;
    }
    obey(n, actions);
  }

  void read(std::size_t n) {
    Node& node = nodes_[n];
    const Position position = ++node.cursor;
    const Chain before = node.role->mark().chain;
    const Actions actions = node.role->read(log_.entry_at(position, before));
    if (node.role->mark().chain != before) count(node, position);
    obey(n, actions);
  }

  // The node has accepted what is at this position.
  void count(Node& node, Position position) {
    const Stored& stored = log_.at(position);
    for (const std::uint32_t command : stored.commands) {
      // All nodes apply the same commands in the same order.
      const std::size_t at = node.state.commands.size();
      if (at == history_.size()) history_.push_back(command);
      if (history_[at] != command) fault("nodes have applied different commands");
      node.state.commands.push_back(command);
      std::erase(node.engine, command);
    }
    node.state.mark = node.role->mark();
    node.state.serial = stored.serial;
  }

  void obey(std::size_t n, const Actions& actions) {
    Node& node = nodes_[n];
    if (actions.release > 0) release(node, actions.release);
    if (actions.stop) {
      fault(actions.line);
    }
    if (actions.drop) {
      reopen(node);
      node.role->reopened(node.flushed.mark);
    }
    if (actions.serve) ++take_overs_;
    if (!actions.append) return;
    const bool window = actions.append->kind == Entry::Kind::kWindow;
    log_.send(n, *actions.append, window ? node.engine : Commands{});
  }

  void release(Node& node, Ticket up_to) {
    while (!node.replies.empty() && node.replies.begin()->first <= up_to) {
      const auto [command, known] = node.replies.begin()->second;
      node.replies.erase(node.replies.begin());
      const Commands& state = node.state.commands;
      const auto found = std::find(state.rbegin(), state.rend(), command);
      const auto place = static_cast<std::size_t>(state.rend() - found);
      if (place == 0) fault("a command is acknowledged that does not count");
      if (place <= known) fault("a reply does not know what was acknowledged before");
      known_ = std::max(known_, place);
      ++acknowledged_;
    }
  }

  Writes writes_;
  Rule broken_;
  std::mt19937_64 random_;
  ModelLog log_;
  Node nodes_[kNodes];
  bool calm_ = false;
  bool quiet_ = false;  // no commands
  Millis now_ = 0;
  std::uint64_t starts_ = 0;
  std::uint32_t commands_ = 0;
  std::size_t acknowledged_ = 0;
  std::string fault_;
  std::size_t take_overs_ = 0;
  Commands history_;       // what some node has accepted
  std::size_t known_ = 0;  // this many of them were acknowledged, or came before one
};

class ModelLogOf : public ::testing::TestWithParam<Writes> {};

// Each seed is five minutes of troubles, with calm in between.
TEST_P(ModelLogOf, LosesNothingAcknowledgedAndIsServedAgainWhenTheTroublesEnd) {
  Millis longest = 0;
  std::size_t acknowledged = 0;
  std::size_t take_overs = 0;
  for (const std::uint64_t seed : carillon::testing::seeds(200)) {
    SCOPED_TRACE(carillon::testing::replay_with(seed));
    Cluster cluster(GetParam(), seed);
    for (int round = 0; round < 20; ++round) {
      cluster.run(15'000);
      longest = std::max(longest, cluster.time_to_serve());
    }
    acknowledged += cluster.acknowledged();
    take_overs += cluster.take_overs();
    ASSERT_EQ(cluster.fault(), "");
    ASSERT_TRUE(cluster.all_alike());
  }
  std::printf("%zu commands acknowledged, %zu take-overs, served after at most %llu ms\n",
              acknowledged, take_overs, static_cast<unsigned long long>(longest));
  EXPECT_GT(acknowledged, 1'000U);
  EXPECT_GT(take_overs, 10U);
  EXPECT_LE(longest, 6'000U);
}

// The same worlds find what is wrong without a rule that needs only delays, repeats and deaths.
TEST_P(ModelLogOf, FindsABrokenRule) {
  for (const Rule broken : {Rule::kBarrier, Rule::kCommit, Rule::kUnknown, Rule::kOwnClaim}) {
    std::uint64_t seed = 1;
    std::string fault;
    for (; seed <= 200 && fault.empty(); ++seed) {
      Cluster cluster(GetParam(), seed, broken);
      cluster.run(60'000);
      fault = cluster.fault();
    }
    EXPECT_NE(fault, "") << "rule " << static_cast<int>(broken);
    std::printf("rule %d: seed %d: %s\n", static_cast<int>(broken), static_cast<int>(seed) - 1,
                fault.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Writes, ModelLogOf,
                         ::testing::Values(Writes::kConditional, Writes::kUnconditional),
                         [](const ::testing::TestParamInfo<Writes>& one) {
                           return one.param == Writes::kConditional ? "Conditional"
                                                                    : "Unconditional";
                         });

TEST(ModelLog, FollowsFromItsSeed) {
  const auto entries = [](std::uint64_t seed) {
    Cluster cluster(Writes::kConditional, seed);
    cluster.run(20'000);
    return cluster.log().size() * 1'000'000 + cluster.acknowledged();
  };
  EXPECT_EQ(entries(3), entries(3));
  EXPECT_NE(entries(3), entries(4));
}

TEST(ModelLog, NodesThatHaveReadWhatIsCutOffStop) {
  for (const Writes writes : {Writes::kConditional, Writes::kUnconditional}) {
    Cluster cluster(writes, 5);
    cluster.run(20'000);
    cluster.time_to_serve();
    EXPECT_TRUE(cluster.all_alike());
    cluster.cut(cluster.log().size() - 1);
    const std::size_t acknowledged = cluster.acknowledged();
    cluster.run(100);
    EXPECT_EQ(cluster.acknowledged(), acknowledged);
    EXPECT_NE(cluster.fault().find("the state is ahead of the shared log"), std::string::npos)
        << cluster.fault();
  }
}

constexpr Entry kClaim{.kind = Entry::Kind::kClaim, .epoch = 1, .owner = {1, 1}, .first = 1};

TEST(ModelLog, TakesAClaimOnceAndSaysSoAgainToItsMaker) {
  ModelLog log(Writes::kConditional, 2, 1);
  log.calm(true);
  Entry other = kClaim;
  other.owner = {2, 2};
  for (int i = 0; i < 2; ++i) {
    log.send(0, kClaim, {});
    log.pass(1);
    EXPECT_FALSE(log.answer(0));
    log.pass(1);
    EXPECT_FALSE(log.answer(0)->failure);
    log.send(1, other, {});
    log.pass(2);
    EXPECT_EQ(log.answer(1)->failure, Failure::kRefused);
  }
  EXPECT_EQ(log.size(), 1U);
}

TEST(ModelLog, WithoutConditionalWritesTakesEverything) {
  ModelLog log(Writes::kUnconditional, 1, 1);
  log.calm(true);
  for (int i = 0; i < 2; ++i) {
    log.send(0, kClaim, {});
    log.pass(2);
    EXPECT_FALSE(log.answer(0)->failure);
  }
  EXPECT_EQ(log.size(), 2U);
}

}  // namespace
}  // namespace carillon::cluster::model
