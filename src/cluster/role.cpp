#include "cluster/role.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "carillon/require.h"

namespace carillon::cluster {
namespace {

// Returns 32 digits.
std::string hex(std::uint64_t high, std::uint64_t low) {
  std::string text(32, '0');
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint64_t half = i < 16 ? high : low;
    text[i] = "0123456789abcdef"[half >> (60 - 4 * (i % 16)) & 15];
  }
  return text;
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

// "the window of epoch 3 at position 17 of the shared log"
std::string name(const Entry& entry) {
  const std::string_view kind = entry.kind == Entry::Kind::kClaim ? "claim" : "window";
  return "the " + std::string(kind) + " of epoch " + number(entry.epoch) + " at position " +
         number(entry.position) + " of the shared log";
}

}  // namespace

Actions Role::found(const LogId& log, Place place) {
  if (phase_ == Phase::kStopped) return {};
  CARILLON_REQUIRE(phase_ != Phase::kDropping);
  if (mark_.log == LogId{}) mark_.log = log;
  if (log != mark_.log && obeys(Rule::kLogId)) {
    return stop(Rule::kLogId, "the shared log is another one: its id is " + hex(log.high, log.low) +
                                  ", and the state is of " + hex(mark_.log.high, mark_.log.low));
  }
  placed_ = true;
  if (place == Place::kThere || !obeys(Rule::kPlace)) return {};
  const std::string here = "position " + number(mark_.position);
  if (place == Place::kEndsBefore) {
    return stop(Rule::kPlace, "the state is ahead of the shared log, which ends before " + here +
                                  ", where the state has read change " + number(mark_.next - 1));
  }
  if (place == Place::kBeginsAfter) {
    return stop(Rule::kPlace, "the shared log begins after " + here +
                                  ", where the state ends with change " + number(mark_.next - 1));
  }
  return stop(Rule::kPlace, "the shared log has another entry at " + here +
                                " than the one that the state has read there, or another history "
                                "before it");
}

Actions Role::read(const Entry& entry) {
  if (phase_ == Phase::kStopped) return {};
  CARILLON_REQUIRE(placed_ && phase_ != Phase::kDropping);
  if (!entry.intact && obeys(Rule::kIntact)) {
    return stop(Rule::kIntact, "the entry at position " + number(entry.position) +
                                   " of the shared log is damaged: its checksum is wrong");
  }
  CARILLON_REQUIRE(entry.position > mark_.position, entry.position, mark_.position);
  if (entry.log != mark_.log && obeys(Rule::kLogId)) {
    return stop(Rule::kLogId, name(entry) + " is of another log, " +
                                  hex(entry.log.high, entry.log.low) + ", and the state is of " +
                                  hex(mark_.log.high, mark_.log.low));
  }
  return judge(entry);
}

// An entry of the current epoch, or the claim that ends it, must go on where this node is.
Actions Role::judge(const Entry& entry) {
  const bool claims = entry.kind == Entry::Kind::kClaim;
  const Epoch current = claims ? mark_.epoch + 1 : mark_.epoch;
  if (entry.epoch < current && (claims || obeys(Rule::kEpoch))) return {};
  if (entry.epoch > current) {
    if (!obeys(Rule::kEveryClaim)) return {};
    return stop(Rule::kEveryClaim, name(entry) + " comes before any claim of epoch " +
                                       number(mark_.epoch + 1) + ": claims are missing");
  }
  if (!claims && entry.owner != mark_.owner && obeys(Rule::kOwner)) {
    return stop(Rule::kOwner, name(entry) + " is of " + hex(entry.owner.high, entry.owner.low) +
                                  ", but this epoch was claimed by " +
                                  hex(mark_.owner.high, mark_.owner.low));
  }
  if (entry.first < mark_.epoch_began && obeys(Rule::kNotBehind)) {
    return stop(Rule::kNotBehind, name(entry) + " goes on from change " + number(entry.first) +
                                      ", but the changes before " + number(mark_.epoch_began) +
                                      " were accepted in an earlier epoch");
  }
  if (entry.first < mark_.next && !claims) {
    return obeys(Rule::kRepeat) ? Actions{} : accept(entry);
  }
  if (entry.first > mark_.next && obeys(Rule::kNoGap)) {
    return stop(Rule::kNoGap, name(entry) + " goes on from change " + number(entry.first) +
                                  ", but change " + number(mark_.next) + " is missing");
  }
  if (entry.first == mark_.next && entry.before != mark_.chain && obeys(Rule::kChain)) {
    return stop(Rule::kChain, name(entry) + " goes on from change " + number(entry.first) +
                                  " of another history: the hash of what is before it differs");
  }
  return accept(entry);
}

Actions Role::accept(const Entry& entry) {
  mark_.chain = entry.after;
  mark_.position = entry.position;
  if (entry.kind == Entry::Kind::kClaim) return accept_claim(entry);
  mark_.next = entry.end;
  mark_.utc = std::max(mark_.utc, entry.utc);
  return accept_window();
}

Actions Role::accept_claim(const Entry& entry) {
  const bool owned = owns();
  mark_.epoch = entry.epoch;
  mark_.owner = entry.owner;
  mark_.epoch_began = mark_.next;
  quiet_ = 0;
  again_ = false;
  end_claim();
  if (entry.owner != seat_.me) {
    if (!owned) return {};
    return drop("another node owns the shard now: " + hex(entry.owner.high, entry.owner.low) +
                " has claimed epoch " + number(entry.epoch));
  }
  if (owned) {
    owned_ = entry.epoch;
    // What was in doubt did not come before this claim, so it never counts. Its changes are in the
    // engine, and go into the next window.
    phase_ = Phase::kOwning;
    open_ = open_ || in_flight_;
    in_flight_ = false;
    return append_if_due();
  }
  Actions actions;
  const bool ended = entry.epoch <= owned_ && obeys(Rule::kOwnOnce);
  if (ended || !may_own()) return actions;
  phase_ = Phase::kOwning;
  owned_ = entry.epoch;
  since_commit_ = 0;
  actions.serve = true;
  return actions;
}

Actions Role::accept_window() {
  if (!owns()) {
    quiet_ = 0;
    again_ = false;
    return {.apply = true};
  }
  if (in_flight_) return count_window();
  return drop("the shared log has taken change " + number(mark_.next - 1) +
              " of this node after it said that it had not");
}

// The window in flight counts.
Actions Role::count_window() {
  in_flight_ = false;
  again_ = again_ && phase_ == Phase::kDoubting;  // its claim must still be tried again
  since_commit_ = 0;
  const Ticket counted = sent_;
  Actions actions = append_if_due();
  actions.release = std::max(actions.release, counted);
  return actions;
}

Actions Role::committed(const Entry& entry) {
  CARILLON_REQUIRE(calls());
  const Call call = std::exchange(call_, Call::kNone);
  if (call == Call::kWindow && in_flight_) {
    if (seat_.writes == Writes::kConditional) {
      CARILLON_REQUIRE(entry.epoch == mark_.epoch && entry.first == mark_.next, entry.epoch,
                       mark_.epoch, entry.first, mark_.next);
      return accept(entry);
    }
    if (!obeys(Rule::kReadBack)) return count_window();
  }
  if (call == Call::kClaim && !obeys(Rule::kReadToClaim) && phase_ == Phase::kFollowing) {
    mark_.epoch = entry.epoch;
    mark_.owner = seat_.me;
    mark_.epoch_began = mark_.next;
    phase_ = Phase::kOwning;
    owned_ = entry.epoch;
    return {.serve = true};
  }
  return append_if_due();
}

Actions Role::failed(Failure failure) {
  CARILLON_REQUIRE(calls());
  const Call call = std::exchange(call_, Call::kNone);
  if (call == Call::kClaim) return claim_failed(failure);
  if (call == Call::kWindow && in_flight_) return window_failed(failure);
  return append_if_due();  // what the log holds has answered already, or the engine is gone
}

Actions Role::window_failed(Failure failure) {
  switch (failure) {
    case Failure::kRefused:
      return drop("another node owns the shard now: the shared log has refused change " +
                  number(mark_.next) + " of epoch " + number(mark_.epoch));
    case Failure::kUnavailable:
      break;
    case Failure::kUnknown:
      if (!obeys(Rule::kUnknown)) return count_window();
      if (obeys(Rule::kOwnClaim)) return doubt();
  }
  in_flight_ = false;
  open_ = true;
  again_ = true;
  return {};
}

Actions Role::claim_failed(Failure failure) {
  if (phase_ == Phase::kStopped) return {};
  quiet_ = 0;
  again_ = failure != Failure::kRefused;
  if (again_ || phase_ == Phase::kFollowing) return {};
  return drop("another node owns the shard now: the shared log has refused the claim of epoch " +
              number(mark_.epoch + 1));
}

Actions Role::doubt() {
  phase_ = Phase::kDoubting;
  return claim();
}

Actions Role::claim() {
  call_ = Call::kClaim;
  quiet_ = 0;
  again_ = false;
  return {.append = Entry{.kind = Entry::Kind::kClaim,
                          .log = mark_.log,
                          .epoch = mark_.epoch + 1,
                          .owner = seat_.me,
                          .first = mark_.next,
                          .before = mark_.chain}};
}

Actions Role::append_if_due() {
  if (phase_ != Phase::kOwning || calls() || in_flight_) return {};
  const bool at_once = open_ && !again_;
  if (!at_once && quiet_ < patience()) return {};
  call_ = Call::kWindow;
  in_flight_ = true;
  open_ = false;
  again_ = false;
  quiet_ = 0;
  ++sent_;
  return {.release = obeys(Rule::kCommit) ? 0 : sent_,
          .append = Entry{.log = mark_.log,
                          .epoch = mark_.epoch,
                          .owner = seat_.me,
                          .first = mark_.next,
                          .before = mark_.chain}};
}

Actions Role::ran() {
  CARILLON_REQUIRE(owns());
  open_ = true;
  return append_if_due();
}

Actions Role::claim_again() {
  CARILLON_REQUIRE(owns() && !calls() && !in_flight_);
  return doubt();
}

Actions Role::resign() {
  CARILLON_REQUIRE(owns() && !calls() && !in_flight_);
  Actions actions = claim();
  actions.append->owner = {};
  return actions;
}

Ticket Role::ticket() const {
  return in_flight_ && !obeys(Rule::kBarrier) ? sent_ : sent_ + 1;
}

Actions Role::reopened(const Mark& flushed) {
  CARILLON_REQUIRE(phase_ == Phase::kDropping);
  phase_ = Phase::kFollowing;
  mark_ = flushed;
  placed_ = false;
  quiet_ = 0;
  return {};
}

Actions Role::passed(Millis ms) {
  quiet_ = std::min(quiet_ + std::min(ms, silence()), silence());
  if (owns()) since_commit_ = std::min(since_commit_ + std::min(ms, kRefuse), kRefuse);
  if (next_wakeup() != Millis{0}) return {};
  if (phase_ != Phase::kOwning) return claim();
  return in_flight_ ? doubt() : append_if_due();
}

// How long it must be quiet before something is due.
Millis Role::patience() const {
  if (again_) return kRetry;
  if (phase_ == Phase::kOwning && !in_flight_) return kBeat;
  return phase_ == Phase::kFollowing ? silence() : kSilence;
}

std::optional<Millis> Role::next_wakeup() const {
  if (calls() || phase_ == Phase::kStopped || phase_ == Phase::kDropping) return {};
  if (phase_ == Phase::kFollowing && !(placed_ && may_own())) return {};
  return patience() - std::min(quiet_, patience());
}

Actions Role::measured(std::int64_t skew) {
  constexpr auto kMost = static_cast<std::int64_t>(kMostSkew);
  const Clock before =
      std::exchange(clock_, skew >= -kMost && skew <= kMost ? Clock::kRight : Clock::kOff);
  if (clock_ == before || phase_ == Phase::kStopped) return {};
  if (clock_ == Clock::kRight) {
    if (before == Clock::kUnmeasured) return {};
    return {.line = "the clock is right again: this node may own the shard"};
  }
  const auto bits = static_cast<std::uint64_t>(skew);
  std::string line = "the clock of this node is " + number(skew > 0 ? bits : 0 - bits) + " ms " +
                     (skew > 0 ? "ahead of" : "behind") + " the shared log's; beyond " +
                     number(kMostSkew) + " ms it may not own the shard";
  if (owns() && obeys(Rule::kClock)) return drop(std::move(line));
  return {.line = std::move(line)};
}

// The claim under way is decided: its answer says nothing any more.
void Role::end_claim() {
  if (call_ == Call::kClaim) call_ = Call::kEndedClaim;
}

Actions Role::drop(std::string line) {
  end_claim();
  in_flight_ = false;
  open_ = false;
  again_ = false;
  quiet_ = 0;
  since_commit_ = 0;
  phase_ = obeys(Rule::kDrop) ? Phase::kDropping : Phase::kFollowing;
  return {.drop = obeys(Rule::kDrop), .line = std::move(line)};
}

Actions Role::stop(Rule rule, std::string line) {
  phase_ = Phase::kStopped;
  stopped_by_ = rule;
  in_flight_ = false;
  return {.stop = true, .line = std::move(line)};
}

}  // namespace carillon::cluster
