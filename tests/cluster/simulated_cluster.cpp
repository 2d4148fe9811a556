#include "cluster/simulated_cluster.h"

#include <algorithm>
#include <utility>

namespace carillon::cluster::model {

class SimulatedCluster::Calm {
 public:
  explicit Calm(SimulatedCluster& cluster) : cluster_(cluster) { set(true); }
  Calm(const Calm&) = delete;
  Calm& operator=(const Calm&) = delete;
  ~Calm() { set(false); }

 private:
  void set(bool on) {
    cluster_.calm_ = on;
    cluster_.log_.calm(on);
  }

  SimulatedCluster& cluster_;
};

SimulatedCluster::SimulatedCluster(Writes writes, std::uint64_t seed, Rule broken)
    : writes_(writes), broken_(broken), random_(seed), log_(writes, kNodes, seed + 1) {
  for (std::size_t n = 0; n < kNodes; ++n) start(n);
}

void SimulatedCluster::run(Millis ms) {
  for (const Millis end = now_ + ms; now_ < end;) {
    const Millis step = 1 + random_() % 40;
    now_ += step;
    log_.pass(step);
    for (std::size_t n = 0; n < kNodes; ++n) turn(n);
  }
}

Millis SimulatedCluster::time_to_serve() {
  const Calm calm(*this);
  for (Node& node : nodes_) node.held_until = 0;
  const Millis start = now_;
  const std::size_t before = acknowledged_;
  while (acknowledged_ == before && now_ - start < 60'000) run(1);
  return now_ - start;
}

void SimulatedCluster::cut(Position last) {
  log_.cut(last);
  for (Node& node : nodes_) node.begun = false;
}

bool SimulatedCluster::all_alike() {
  const Calm calm(*this);
  quiet_ = true;
  run(4'000);
  quiet_ = false;
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [this](const Node& node) { return node.state.commands == history_; });
}

void SimulatedCluster::violated(const std::string& what) {
  if (fault_.empty()) fault_ = what;
}

void SimulatedCluster::start(std::size_t n) {
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

void SimulatedCluster::reopen(Node& node) {
  node.engine.clear();
  node.replies.clear();
  node.state = node.flushed;
  node.begun = false;
}

void SimulatedCluster::turn(std::size_t n) {
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

void SimulatedCluster::command(std::size_t n) {
  Node& node = nodes_[n];
  node.engine.push_back(++commands_);
  node.replies.emplace(node.role->ticket(), Reply{commands_, known_});
  obey(n, node.role->ran());
}

void SimulatedCluster::answered(std::size_t n, const Answer& answer) {
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

void SimulatedCluster::read(std::size_t n) {
  Node& node = nodes_[n];
  const Position position = ++node.cursor;
  const Chain before = node.role->mark().chain;
  const Actions actions = node.role->read(log_.entry_at(position, before));
  if (node.role->mark().chain != before) count(node, position);
  obey(n, actions);
}

// The node has accepted what is at this position.
void SimulatedCluster::count(Node& node, Position position) {
  const Stored& stored = log_.at(position);
  for (const std::uint32_t command : stored.commands) {
    // All nodes apply the same commands in the same order.
    const std::size_t at = node.state.commands.size();
    if (at == history_.size()) history_.push_back(command);
    if (history_[at] != command) violated("nodes have applied different commands");
    node.state.commands.push_back(command);
    std::erase(node.engine, command);
  }
  node.state.mark = node.role->mark();
  node.state.serial = stored.serial;
}

void SimulatedCluster::obey(std::size_t n, const Actions& actions) {
  Node& node = nodes_[n];
  if (actions.release > 0) release(node, actions.release);
  if (actions.stop) violated(actions.line);
  if (actions.drop) {
    reopen(node);
    node.role->reopened(node.flushed.mark);
  }
  if (actions.serve) ++take_overs_;
  if (!actions.append) return;
  const bool window = actions.append->kind == Entry::Kind::kWindow;
  log_.send(n, *actions.append, window ? node.engine : Commands{});
}

void SimulatedCluster::release(Node& node, Ticket up_to) {
  while (!node.replies.empty() && node.replies.begin()->first <= up_to) {
    const auto [command, known] = node.replies.begin()->second;
    node.replies.erase(node.replies.begin());
    const Commands& state = node.state.commands;
    const auto found = std::find(state.rbegin(), state.rend(), command);
    const auto place = static_cast<std::size_t>(state.rend() - found);
    if (place == 0) violated("a command is acknowledged that does not count");
    if (place <= known) violated("a reply does not know what was acknowledged before");
    known_ = std::max(known_, place);
    ++acknowledged_;
  }
}

}  // namespace carillon::cluster::model
