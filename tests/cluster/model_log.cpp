#include "cluster/model_log.h"

#include "carillon/require.h"

namespace carillon::cluster::model {
namespace {

std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15U;
  x ^= x >> 32;
  return x * 0xd6e8feb86659fd93U ^ x >> 29;
}

Chain chain_after(const Chain& before, const Entry& entry, const Commands& commands) {
  std::uint64_t hash = before[0];
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(entry.kind), entry.epoch, entry.owner.high, entry.owner.low,
        entry.first, entry.before[0], static_cast<std::uint64_t>(commands.size())}) {
    hash = mixed(hash, part);
  }
  for (const std::uint32_t command : commands) hash = mixed(hash, command);
  return {hash};
}

bool is_claim(const Entry& entry) {
  return entry.kind == Entry::Kind::kClaim;
}

}  // namespace

void ModelLog::send(std::size_t node, const Entry& entry, Commands commands) {
  CARILLON_REQUIRE(calls_[node].number == 0, node);
  calls_[node] = {.number = ++sent_, .until = now_ + kTimeout};
  if (in(3)) {  // no connection
    calls_[node].answer = {.failure = Failure::kUnavailable, .entry = {}};
    return;
  }
  const Message message{entry, std::move(commands), node, sent_};
  if (in(3)) return;  // never
  messages_.emplace(now_ + delay(), message);
  if (in(3)) messages_.emplace(now_ + delay(), Message{entry, message.commands, {}, 0});
}

std::optional<Answer> ModelLog::answer(std::size_t node) {
  Call& call = calls_[node];
  if (call.number == 0) return {};
  std::optional<Answer> answer;
  if (call.answer && call.answered_at <= now_) {
    answer = std::move(call.answer);
  } else if (call.until <= now_) {
    answer = {.failure = Failure::kUnknown, .entry = {}};
  }
  if (answer) call = {};
  return answer;
}

void ModelLog::pass(Millis ms) {
  now_ += ms;
  while (!messages_.empty() && messages_.begin()->first <= now_) {
    const auto first = messages_.extract(messages_.begin());
    arrive(first.mapped(), first.key());
  }
}

void ModelLog::arrive(const Message& message, Millis at) {
  Answer answer = take(message);
  if (!message.waits || calls_[*message.waits].number != message.call) return;
  Call& call = calls_[*message.waits];
  call.answer = std::move(answer);
  call.answered_at = at + delay();
}

Answer ModelLog::take(const Message& message) {
  const Entry& entry = message.entry;
  if (writes_ == Writes::kConditional && !takes(entry)) {
    for (const Stored& one : stored_) {
      const bool mine = is_claim(entry) && is_claim(one.entry) && one.entry.epoch == entry.epoch &&
                        one.entry.owner == entry.owner;
      if (mine) return {.failure = {}, .entry = one.entry};
    }
    return {.failure = Failure::kRefused, .entry = {}};
  }
  const Chain before = stored_.empty() ? Chain{} : stored_.back().entry.after;
  Stored stored{entry, message.commands, ++serials_};
  stored.entry.position = stored_.size() + 1;
  stored.entry.end = entry.first + (is_claim(entry) ? 0 : 1);
  stored.entry.after = chain_after(before, entry, message.commands);
  stored_.push_back(std::move(stored));
  return {.failure = {}, .entry = stored_.back().entry};
}

bool ModelLog::takes(const Entry& entry) const {
  if (!is_claim(entry)) {
    return entry.before == (stored_.empty() ? Chain{} : stored_.back().entry.after);
  }
  Epoch last = 0;
  for (auto it = stored_.rbegin(); it != stored_.rend() && last == 0; ++it) {
    if (is_claim(it->entry)) last = it->entry.epoch;
  }
  return entry.epoch == last + 1;
}

const Stored& ModelLog::at(Position position) const {
  CARILLON_REQUIRE(position >= 1 && position <= stored_.size(), position, stored_.size());
  return stored_[position - 1];
}

Entry ModelLog::entry_at(Position position, const Chain& chain) const {
  const Stored& stored = at(position);
  Entry entry = stored.entry;
  entry.after = chain_after(chain, entry, stored.commands);
  return entry;
}

Place ModelLog::place_of(Position position, std::uint64_t serial) const {
  if (position == 0) return Place::kThere;
  if (position > stored_.size()) return Place::kEndsBefore;
  return at(position).serial == serial ? Place::kThere : Place::kAnother;
}

void ModelLog::cut(Position last) {
  if (last < stored_.size()) stored_.resize(last);
}

}  // namespace carillon::cluster::model
