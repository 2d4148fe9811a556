// Jobs, named by their ids or by their keys: what is asked for. job.h has what is told.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "server/api/job.h"
#include "server/api/operation.h"
#include "server/api/problem.h"
#include "server/api/request_context.h"

namespace carillon::server {

// --- What is asked for.

struct JobId {
  std::uint64_t id = 0;
};
template <>
inline constexpr auto kFields<JobId> = fields(field<&JobId::id>("The job.", kIdRule));

struct BuryJob {
  std::uint64_t id = 0;
  std::optional<queue::Priority> priority;
};
template <>
inline constexpr auto kFields<BuryJob> =
    fields(Schema{"Bury"}, field<&BuryJob::id>("The job.", kIdRule),
           field<&BuryJob::priority>("Its new priority; without it the job keeps its own."));

// Not checked as a key: a store of an older version may have a job with another kind of key.
struct JobKey {
  std::string tube;
  std::string key;
};
template <class Of>
inline constexpr std::array kInTubeFields = {
    field<&Of::tube, Of>("The tube.", kTubeRule),
    field<&Of::key, Of>("1 to 200 bytes without space or control character, and no quote in "
                        "front.")};
template <>
inline constexpr auto kFields<JobKey> = fields(kInTubeFields<JobKey>);

// A change of a job (RFC 7396).
struct JobChange {
  std::optional<queue::Priority> priority;
  std::optional<Duration> delay;
  std::optional<Moment> due;
  std::optional<Duration> ttr;
  std::optional<JobBody> body;
  std::optional<Duration> expires_in;
  Patch<Moment> expires_at;
  std::optional<queue::AtExpiry> at_expiry;
  Patch<std::string> content_type;
  Patch<Json> metadata;
};
template <class Of>
inline constexpr std::array kChangeFields = {
    field<&Of::priority, Of>("0 is the most urgent."),
    field<&Of::delay, Of>("The job is due this long from now."),
    field<&Of::due, Of>("The job is due then. The past is now."),
    field<&Of::ttr, Of>("How long a worker may hold the job.",
                        {.least = queue::kMinTtr, .most = queue::kMaxTtr}),
    field<&Of::body, Of>(kBodyHelp),
    field<&Of::expires_in, Of>("No worker gets the job after this time.", {.least = 1}),
    field<&Of::expires_at, Of>("The same, as a moment; null: it does not expire."),
    field<&Of::at_expiry, Of>("What becomes of the job then."),
    field<&Of::content_type, Of>("Kept with the job, and given back.", {.form = &kTypeForm}),
    field<&Of::metadata, Of>("The same. What is null in it goes.")};
inline constexpr std::string_view kChangeHelp = "RFC 7396: what is not named stays.";

struct ChangeJob : JobChange {
  std::uint64_t id = 0;
};
template <>
inline constexpr auto kFields<ChangeJob> = fields(Schema{"JobPatch", kChangeHelp},
                                                  field<&ChangeJob::id>("The job.", kIdRule),
                                                  kChangeFields<ChangeJob>);

struct ChangeKey : JobChange {
  std::string tube;
  std::string key;
};
template <>
inline constexpr auto kFields<ChangeKey> = fields(Schema{"JobPatch", kChangeHelp},
                                                  kInTubeFields<ChangeKey>,
                                                  kChangeFields<ChangeKey>);

enum class IfReserved : std::uint8_t { kRefuse, kAsk };
template <>
inline constexpr auto kWords<IfReserved> = words("refuse", "ask");

struct CancelOptions {
  IfReserved if_reserved = IfReserved::kRefuse;
  bool done = false;
};
template <class Of>
inline constexpr std::array kCancelOptions = {
    field<&Of::if_reserved, Of>("ask: its worker is asked to stop."),
    field<&Of::done, Of>("The work is done: if the job is ready, its key_window begins.")};

struct CancelJob : CancelOptions {
  std::uint64_t id = 0;
};
template <>
inline constexpr auto kFields<CancelJob> = fields(field<&CancelJob::id>("The job.", kIdRule),
                                                  kCancelOptions<CancelJob>);

struct CancelKey : CancelOptions {
  std::string tube;
  std::string key;
};
template <>
inline constexpr auto kFields<CancelKey> = fields(kInTubeFields<CancelKey>,
                                                  kCancelOptions<CancelKey>);

// The states whose next job can be asked for.
enum class WaitsAs : std::uint8_t { kReady, kDelayed, kBuried };
template <>
inline constexpr auto kWords<WaitsAs> = words("ready", "delayed", "buried");
struct PeekTube {
  std::string tube;
  WaitsAs state = WaitsAs::kReady;
};
template <>
inline constexpr auto kFields<PeekTube> = fields(field<&PeekTube::tube>("The tube.", kTubeRule),
                                                 field<&PeekTube::state>("The state of the job.",
                                                                         {.usual = "ready"}));

struct CancelAsked {
  bool cancel_requested = true;
};
template <>
inline constexpr auto kFields<CancelAsked> =
    fields(field<&CancelAsked::cancel_requested>("It is true."));

// --- What other operations do with jobs, too.

Problem no_such_job(queue::JobId id);
std::string path_of_job(queue::JobId id);
// Answers with the body alone, of any size.
void answer_body(RequestContext& x, queue::JobId id);
// Throws Problem if the request's If-Match does not name the job as it is.
void require_match(RequestContext& x, queue::JobId id);
// Returns the job of the tube that has the key; none if no job has it.
std::optional<queue::JobId> find_key(RequestContext& x, const JobKey& named);
Problem no_such_key(const ProblemKind& kind, const JobKey& named);

}  // namespace carillon::server
