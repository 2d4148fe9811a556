// The part of the engine that puts, reads, changes and deletes jobs.
//
//   engine.use(client, "mail");
//   engine.put(client, now, {.due_in = 3'000}, "hello");                    // due in 3 s
//   PutOutcome put = engine.put(client, now, {.key = "order-7"}, "...");    // one at a time
//   engine.patch(now, put.id, {.due_in = 60'000});
//   engine.cancel(now, put.id);
//   engine.kick_job(now, buried);                                           // ready again
//
// engine.h has the contracts that all methods keep. All methods that take a ClientId REQUIRE: the
// client is connected, and does not wait in a reserve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/now.h"

namespace carillon::queue {

struct EngineState;  // private
struct JobBulk;      // job_bulk.h

class EngineJobs {
 public:
  // --- Puts

  // Makes `tube` the client's tube in use, which its puts, peeks and kicks work on.
  // REQUIRES, here and below: the name of a tube has 1 to 200 bytes.
  void use(ClientId client, std::string_view tube);
  // Returns the name of the client's tube in use.
  const std::string& tube_in_use(ClientId client) const;
  // Puts a new job into the tube in use. A put that throws may use up an id. Throws StoreError also
  // after kLastId was given, NeverRuns (never_runs.h), or std::invalid_argument if the key has over
  // kMaxKey bytes, or the attributes over kMaxAttributes. A key costs one more look-up.
  PutOutcome put(ClientId client, Now now, const PutOrder& order, std::string_view body);
  // The same for a body that comes in pieces, so that nobody has to hold all of it, and each call
  // is short:
  //
  //   LargeBody body = engine.begin_body(1'000'000);
  //   while (body.put < body.bytes) engine.add_piece(body, next_piece());
  //   engine.put(client, now, order, body);
  //
  // The caller must put a body that it has begun, or give it up; the next start of an engine gives
  // it up, too. If `put` throws, or refuses the order, nothing was put yet. REQUIRES: more than
  // kBodyPiece bytes; each piece has kBodyPiece bytes, the last one the rest.
  LargeBody begin_body(std::uint32_t bytes);
  void add_piece(LargeBody& body, std::string_view piece);
  PutOutcome put(ClientId client, Now now, const PutOrder& order, const LargeBody& body);
  void give_up(const LargeBody& body);

  // Puts all of the jobs into the tube in use with one append, in their order, or none of them. A
  // job that is not put because of OnConflict::kIgnore does not stand in the way of the others. A
  // caller that got no answer repeats the call with the same BatchOrder::once. Throws NeverRuns and
  // std::invalid_argument if two of them have the same key, or one a larger body than kBodyPiece.
  // O(jobs * log jobs): 1 000 jobs take about 2 ms, and 5 ms if they have keys.
  BatchOutcome put_all(ClientId client, Now now, std::span<const NewJob> jobs,
                       const BatchOrder& order = {});

  // Returns true if a batch with this token (BatchOrder::once) would get the answer of the first
  // one.
  bool knows_token(std::string_view token) const;

  // --- One job, or a few

  // Deletes a job that is ready, delayed, buried, or reserved by this client. If it is reserved or
  // ready (a worker may have taken longer than its ttr), it counts as done, and the window of its
  // key begins. If it is delayed or buried, or its cancel was asked for, its key is free.
  Outcome remove(ClientId client, Now now, JobId id);
  // The same for many jobs, with one append. Returns an outcome for each id; if an id comes twice,
  // it is done once.
  std::vector<Outcome> remove_all(ClientId client, Now now, std::span<const JobId> ids);
  // Deletes a job that nobody has reserved; its key is free then. If a client has reserved it, and
  // `ask` is true, the job is deleted when its reservation ends; its worker can see that by
  // cancel_asked().
  ChangeOutcome cancel(Now now, JobId id, bool ask = false);
  // Changes a job that nobody has reserved. A buried job that gets a due time is not buried any
  // more. Throws NeverRuns.
  ChangeOutcome patch(Now now, JobId id, const Patch& patch);
  // Buries a job that nobody has reserved. This counts neither as an attempt nor as a reserve. A
  // buried job stays where it is.
  ChangeOutcome bury_job(Now now, JobId id, std::optional<Priority> priority = std::nullopt);
  // Returns the job of the tube in use that has the key, or none.
  std::optional<JobId> job_with_key(ClientId client, std::string_view key);

  // --- Peeks

  // The peeks return none if there is no such job.
  std::optional<JobView> peek(Now now, JobId id);
  // The ready job of the tube in use that goes out next.
  std::optional<JobView> peek_ready(ClientId client, Now now);
  // The delayed job of the tube in use that is due first. A call visits at most 16 jobs, and jobs
  // that were reserved before their time may come first:
  //
  //   DelayedPeek peek;
  //   while (!peek.done) engine.peek_delayed(client, now(), peek);
  //
  // REQUIRES: `use` is not called in between.
  void peek_delayed(ClientId client, Now now, DelayedPeek& peek);
  // The buried job of the tube in use that was buried first.
  std::optional<JobView> peek_buried(ClientId client, Now now);

  // --- Kicks, and changes of many jobs

  // Makes up to `kick.bound` buried jobs of the tube in use ready; if it has no buried jobs, up to
  // that many delayed jobs. The order is the one in which the peeks show them. A call kicks
  // at most kKickStep jobs, so that the owner can serve others in between:
  //
  //   Kick kick{.bound = 1'000'000};
  //   while (!kick.done) engine.kick(client, now(), kick);    // kick.kicked: the answer
  //
  // REQUIRES: `use` is not called in between. Jobs that other commands change meanwhile are kicked
  // or not; `kicked` counts the right ones. If the store fails half-way, the kick is done, and has
  // counted the jobs kicked so far; StoreError comes from the first step only.
  static constexpr std::size_t kKickStep = 16;
  void kick(ClientId client, Now now, Kick& kick);
  // Makes one buried or delayed job ready.
  Outcome kick_job(Now now, JobId id);
  // Goes on with a change of many jobs of a tube, by one append at most (job_bulk.h). Throws
  // StoreError with nothing changed, and OverLimit if the tube they move to cannot be made.
  void change_jobs(Now now, JobBulk& bulk);

 protected:
  explicit EngineJobs(EngineState& state) : state_(state) {}
  ~EngineJobs() = default;

 private:
  PutOutcome put(ClientId client, Now now, const PutOrder& order, const LargeBody& of,
                 std::string_view body);

  EngineState& state_;
};

}  // namespace carillon::queue
