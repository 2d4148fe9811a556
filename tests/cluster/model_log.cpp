#include "cluster/model_log.h"

#include <utility>

#include "carillon/require.h"
#include "cluster/entries.h"

namespace carillon::cluster::model {
namespace {

std::uint64_t content(const Commands& commands) {
  std::uint64_t hash = commands.size();
  for (const std::uint32_t command : commands) hash = mixed(hash, command);
  return hash;
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
  const Entry found = found_at(stored_.size() + 1, last_chain(), entry, content(message.commands));
  stored_.push_back({found, message.commands, ++serials_});
  return {.failure = {}, .entry = found};
}

bool ModelLog::takes(const Entry& entry) const {
  if (!is_claim(entry)) return entry.before == last_chain();
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
  return found_at(position, chain, stored.entry, content(stored.commands));
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
