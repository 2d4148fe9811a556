// The role of a node in a shard: who owns it, what counts as written, and which reply may leave.
//
// A *shard* is a whole server: engine, store, event loop. Its *shared log* lies outside, in a log
// engine that others run (PostgreSQL, Kafka), and every *node* reads the same entries in the same
// order. One node *owns* the shard: it runs the commands, and appends their changes as *windows*.
// The others *follow*: they apply the windows to their own state. A follower that hears nothing
// *claims* the shard, which begins the next *epoch*; once it has read the log up to its claim, it
// has *taken over*, and serves. So any of these machines may die, and nothing acknowledged is lost.
//
// All rules of this are here, in one pure function of what has happened: no thread, clock or
// socket. Events go in, and actions come out. So tests/cluster can try all orders of events.
//
//   Role role({.me = random_owner(), .writes = Writes::kConditional}, state.mark());
//   obey(role.found(log.id(), log.place_of(state.mark())));     // begin to follow
//   obey(role.measured(skew));                                  // the clock is right: it may own
//   obey(role.read(entry));                                     // the windows of another owner
//   obey(role.passed(2'000));      // .append is a claim: log.append(*actions.append)
//   obey(role.committed(claim));   // it is in the log; what is before it must be read
//   obey(role.read(claim));        // .serve: make an engine from the state
//
//   const Ticket ticket = role.ticket();   // the reply of a command waits for this one
//   obey(role.ran());              // .append is a window: what the command has changed
//   obey(role.committed(window));  // .release = ticket: the reply leaves
//
// Contracts, whatever the clocks, pauses, crashes, delays and repeats:
// 1. Every reply waits for a window that was appended after its command ran, an empty one if the
//    command changed nothing. That window is a *barrier*: if another node has claimed meanwhile,
//    every reader ignores the window, and the reply never leaves. So a node that was paused, cut
//    off or deposed answers nothing, and no lease in time is needed.
// 2. A window counts when the rules below have accepted it, at every reader alike: it is accepted
//    once, and in order.
// 3. If the log is not the one that this node has read (it was cut, swapped, restored from an older
//    disk), the node stops with one line that says what was found. It never skips. A node cannot
//    miss what it has not read: if the log loses its end before a follower has read it, the log is
//    whole to this follower. So the log's engine must keep what it has confirmed.
// 4. Unavailable, unknown and deposed are three things. *Unavailable*: the log has certainly not
//    taken the window; the owner tries again. *Unknown*: it may have taken it, or take it later;
//    the owner claims the next epoch itself. A window that comes after this claim never counts; one
//    that came before it is read before it. *Deposed*: another node has claimed; the engine goes,
//    and with it all in the state that was not flushed.
//
// Every window takes at least one number, also an empty one (a *beat*). Otherwise nobody could
// tell a repeat of a beat from the next beat. A claim is an entry of the log, too: where it is in
// the log, the epoch before ends.
//
// Thread safety: none. Each call is O(1). A Role is a value: it can be copied and compared.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace carillon::cluster {

// Counts the claims of a shard that were accepted, from 1. 0: nobody has claimed it yet.
using Epoch = std::uint64_t;
// Counts the changes in the log of a shard, from 1. The same as queue::LogNumber
// (include/carillon/queue/log.h), which this layer does not include.
using LogNumber = std::uint64_t;
// Where an entry is in the shared log, from 1. Only the order of positions matters here.
using Position = std::uint64_t;
// Counts the windows that this node has appended since it started, from 1.
using Ticket = std::uint64_t;
// A hash (32 bytes) of all entries up to one, in order. queue::Log::chain() is another thing: a
// checksum (4 bytes) in the log of one server.
using Chain = std::array<std::uint64_t, 4>;
using Millis = std::uint64_t;
// Milliseconds since 1970-01-01T00:00:00Z.
using UtcMs = std::uint64_t;

// A node: 128 random bits, new each time it begins to follow. All 0: nobody. An owner that ends
// claims the next epoch for nobody, so that a follower claims at once.
struct Owner {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Owner&, const Owner&) = default;
};

// 128 random bits, which a log gets when it is created.
struct LogId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const LogId&, const LogId&) = default;
};

// One entry of the shared log, as its reader finds it or as its maker sends it.
struct Entry {
  enum class Kind : std::uint8_t { kClaim, kWindow };

  Kind kind = Kind::kWindow;
  LogId log = {};
  // False: the checksum is wrong, and only the position is known.
  bool intact = true;
  Epoch epoch = 0;
  Owner owner = {};
  // A window: the number of its first change. A claim: the number that its maker would have read
  // next.
  LogNumber first = 0;
  // The number after the last change. A claim: as `first`. 0 before the entry is in the log.
  LogNumber end = 0;
  // The chain of its maker when it made the entry.
  Chain before = {};
  // The hash of `mark().chain` and this entry. The reader computes it.
  Chain after = {};
  Position position = 0;
  // A window: the UTC of its owner's engine.
  UtcMs utc = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// How far a state has come in the log. It is stored with the state, in the same flush. A flush
// has whole windows.
struct Mark {
  // All 0 in a new state.
  LogId log = {};
  // The last claim that was accepted, and the number of the first change after it.
  Epoch epoch = 0;
  Owner owner = {};
  LogNumber epoch_began = 1;
  // The number that the next window begins with.
  LogNumber next = 1;
  Chain chain = {};
  // The position of the last entry that was accepted. 0: none.
  Position position = 0;
  // The highest UTC of a window.
  UtcMs utc = 0;

  friend bool operator==(const Mark&, const Mark&) = default;
};

// Whether the log checks an append.
enum class Writes : std::uint8_t {
  // Yes, as PostgreSQL can: it takes a claim only if the epoch before is the current one, and a
  // window only if its `before` is the log's own chain. (The number, the epoch and the owner
  // together are not enough: after a cut, all three may come again above another history.) A window
  // counts once the log has taken it.
  kConditional,
  // No, as with Kafka: it takes everything. A window counts once its owner has read it back and the
  // rules have accepted it, not when a delivery is reported.
  kUnconditional,
};

// What is at the position of a mark when its reader begins.
enum class Place : std::uint8_t {
  // All that was read is still there, with nothing else before it; or the mark has no position, and
  // the log has everything from number 1. A log that stores its chain shows this at the position.
  // Another log cannot: a claim can be repeated above another history, so its engine must report
  // cuts.
  kThere,
  kAnother,      // another entry, or another history before it
  kEndsBefore,   // nothing: the log ends before it
  kBeginsAfter,  // nothing: the log begins after it
};

enum class Failure : std::uint8_t {
  // The log did not take it and never will. A claim: another epoch is current. A window: its
  // `before` is not the log's chain.
  kRefused,
  kUnavailable,  // the log did not take it and never will: it was not sent
  kUnknown,      // the log may have taken it, or may take it later
};

// The rules by name. A node that stops says which one was broken. Tests break one at a time, and
// find an order of events in which that does harm. (Not so for kLogId and kIntact: role_test.cpp
// tries them.)
enum class Rule : std::uint8_t {
  kNone,
  // The reader stops if one of these is broken.
  kLogId,       // the log is the one of the state
  kIntact,      // the checksum is right
  kPlace,       // what was read last is still there
  kEveryClaim,  // no claim is missing
  kNotBehind,   // an owner knows all that was accepted before its claim
  kNoGap,       // no window is missing
  kChain,       // what its maker had read is what this node has read
  kOwner,       // a window of the current epoch is of its owner
  // The reader ignores a window that breaks one of these.
  kEpoch,   // a window is of no earlier epoch than the current one
  kRepeat,  // and was not accepted before
  // The rules of an owner.
  kBarrier,      // a reply waits for a window that was appended after its command ran
  kCommit,       // no reply leaves before that window counts
  kReadBack,     // without conditional writes a delivery report says nothing
  kUnknown,      // an unknown window is not a committed one
  kOwnClaim,     // after an unknown window nothing is appended in the same epoch
  kReadToClaim,  // a claim that was taken is no take-over yet
  kDrop,         // a deposed owner drops its engine and what was not flushed
  kOwnOnce,      // and does not own the same epoch again when it reads its own claim again
  kClock,        // a node whose clock is off does not own
};

// What the caller must do, in this order; nothing, if all is empty.
struct Actions {
  // The window that was read: apply its changes to the state.
  bool apply = false;
  // The replies with tickets up to this one may leave.
  Ticket release = 0;
  // End the process; `line` says why.
  bool stop = false;
  // Close the clients and forget their replies, drop the engine, open the state again as it was
  // flushed, and call reopened(). `line` says why.
  bool drop = false;
  // Make an engine from the state and serve. Its UTC begins at no less than mark().utc.
  bool serve = false;
  // Append this claim or window to the log, and report what became of it by committed() or
  // failed(). A window takes all changes of the engine that are not committed. At most one
  // append is under way.
  std::optional<Entry> append = {};
  // For people: one line. Empty: nothing to say.
  std::string line = {};
};

class Role {
 public:
  // An owner appends at least this often.
  static constexpr Millis kBeat = 500;
  // A follower that hears nothing for this long claims: the first one after kSilence (after
  // kRetry, if the owner has left), each further one kStep later, so that two rarely claim at once.
  static constexpr Millis kSilence = 2'000;
  static constexpr Millis kStep = 300;
  // An owner whose last commit was this long ago refuses new commands.
  static constexpr Millis kRefuse = 2'000;
  // What the log could not take is tried again after this.
  static constexpr Millis kRetry = 100;
  // A node whose clock is off by more than this may not own.
  static constexpr Millis kMostSkew = 500;

  enum class Phase : std::uint8_t {
    kFollowing,
    kOwning,
    kDoubting,  // an owner that claims again, because it does not know whether its window counts
    kDropping,  // waits for reopened()
    kStopped,
  };

  struct Seat {
    Owner me = {};
    Writes writes = Writes::kConditional;
    // How many followers claim before this one.
    unsigned before_me = 0;
    // Only for tests: a rule that this node breaks.
    Rule broken = Rule::kNone;

    friend bool operator==(const Seat&, const Seat&) = default;
  };

  // Begins as a follower with the state as it was flushed.
  Role(const Seat& seat, const Mark& flushed) : seat_(seat), mark_(flushed) {}

  // Report that following begins, or begins again after the connection to the log was lost.
  // `place`: what is at mark().position. REQUIRES: phase() != kDropping.
  Actions found(const LogId& log, Place place);

  // Report the next entry of the log. An owner on a log with conditional writes need not read.
  // REQUIRES: phase() != kDropping; found() was called, since the start and since reopened(); and
  // entry.position > mark().position, if the entry is intact.
  Actions read(const Entry& entry);

  // Report that the log has taken what was sent: `entry` as a reader will find it.
  // REQUIRES: calls().
  Actions committed(const Entry& entry);
  // Report that it has not, or that nobody knows. An append without an answer in time is unknown.
  // REQUIRES: calls().
  Actions failed(Failure failure);

  // Report that a command ran or that time changed the engine. Call ticket() before: the command's
  // reply waits for it. REQUIRES: owns().
  Actions ran();
  Ticket ticket() const;

  // Asks for another claim of the owner, whose answer shows that all before it is confirmed.
  // REQUIRES: as resign().
  Actions claim_again();

  // Asks for the claim by which an owner leaves. What it appends after this claim never counts.
  // REQUIRES: owns(), !calls(), and every window that was appended counts.
  Actions resign();

  // Report that the state is open again, as it was flushed. REQUIRES: phase() == kDropping.
  Actions reopened(const Mark& flushed);

  // Report how long ago the last call of passed() was, by a clock that does not run back.
  Actions passed(Millis ms);
  // Milliseconds until passed() has something to do. None: only after another event.
  std::optional<Millis> next_wakeup() const;

  // Report the node's UTC less that of the log's engine, in ms. Before the first measurement a node
  // may not own.
  Actions measured(std::int64_t skew);

  Phase phase() const { return phase_; }
  bool owns() const { return phase_ == Phase::kOwning || phase_ == Phase::kDoubting; }
  // False: refuse new commands. They may be retried.
  bool accepts_commands() const { return owns() && since_commit_ < kRefuse; }
  // Returns true if an append is under way.
  bool calls() const { return call_ != Call::kNone; }
  // How far the log counts. Only this much of the state may be flushed: an owner's engine is ahead
  // of it.
  const Mark& mark() const { return mark_; }
  // The rule for which the node has stopped. kNone: it has not.
  Rule stopped_by() const { return stopped_by_; }

  // Enough of it for a hash; == compares all.
  auto fields() const {
    return std::tie(seat_.me.high, seat_.me.low, mark_.log.high, mark_.epoch, mark_.owner.high,
                    mark_.owner.low, mark_.epoch_began, mark_.next, mark_.chain, mark_.position,
                    phase_, stopped_by_, call_, clock_, placed_, in_flight_, open_, again_, sent_,
                    owned_, quiet_, since_commit_);
  }
  friend bool operator==(const Role&, const Role&) = default;

 private:
  enum class Call : std::uint8_t { kNone, kClaim, kEndedClaim, kWindow };
  enum class Clock : std::uint8_t { kUnmeasured, kRight, kOff };

  bool obeys(Rule rule) const { return seat_.broken != rule; }
  bool may_own() const { return clock_ == Clock::kRight || !obeys(Rule::kClock); }
  bool owner_has_left() const { return mark_.epoch > 0 && mark_.owner == Owner{}; }
  Millis silence() const {
    return (owner_has_left() ? kRetry : kSilence) + kStep * seat_.before_me;
  }
  Millis patience() const;

  Actions judge(const Entry& entry);
  Actions accept(const Entry& entry);
  Actions accept_claim(const Entry& entry);
  Actions accept_window();

  Actions count_window();
  Actions claim();
  Actions doubt();
  Actions window_failed(Failure failure);
  Actions claim_failed(Failure failure);
  Actions append_if_due();
  void end_claim();
  Actions drop(std::string line);
  Actions stop(Rule rule, std::string line);

  Seat seat_;
  Mark mark_;
  Phase phase_ = Phase::kFollowing;
  Rule stopped_by_ = Rule::kNone;
  Call call_ = Call::kNone;
  Clock clock_ = Clock::kUnmeasured;
  bool placed_ = false;     // found() said that the log is the right one
  bool in_flight_ = false;  // a window was sent in this epoch, and does not count yet
  bool open_ = false;       // commands ran since the last window that counts or is in flight
  bool again_ = false;      // the log has not taken what was sent: try again after kRetry
  Ticket sent_ = 0;         // windows that were appended
  Epoch owned_ = 0;         // the last epoch that it has owned
  // How long ago an owner has sent something, or a follower has heard of an owner or has claimed.
  // At most silence().
  Millis quiet_ = 0;
  Millis since_commit_ = 0;  // at most kRefuse
};

}  // namespace carillon::cluster
