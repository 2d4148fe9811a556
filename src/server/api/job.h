// The fields of a job in an answer, and of a job in a put; its attributes.
//
//   {"id":17,"tube":"mail","state":"delayed",...}        {"body":"hello","delay":"30s","key":"k"}
#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_stats.h"
#include "carillon/queue/retry.h"
#include "server/api/field.h"
#include "server/api/limits.h"
#include "server/api/names.h"

namespace carillon::server {

// --- Attributes of jobs: a JSON object that clients keep with a job and get back. Four names have
// a meaning for workers and tools (docs/http.md): content_type, metadata, traceparent, tracestate.
//
//   attributes_of(R"({ "traceparent": "00-..." })") == R"({"traceparent":"00-..."})"

// The attributes as fields of a job: those with a meaning, and the others in one object.
struct Attributes {
  std::optional<std::string> content_type;
  std::optional<Json> metadata;
  std::optional<std::string> traceparent;
  std::optional<std::string> tracestate;
  std::optional<Json> attributes;
};

template <class Of>
inline constexpr std::array kAttributeFields = {
    field<&Of::content_type, Of>("Kept with the job, and given back.", {.form = &kTypeForm}),
    field<&Of::metadata, Of>("The same. All that is kept has at most 512 bytes."),
    field<&Of::traceparent, Of>("W3C Trace Context; the header of this name does the same."),
    field<&Of::tracestate, Of>("Goes with a traceparent."),
    field<&Of::attributes, Of>("More that is kept, under names of any choice.")};

// Returns the attributes as one word for the store; an empty text if there are no attributes. Notes
// what is wrong.
std::string kept_attributes(Reader& reader, const Attributes& attributes);
// Reads the word that kept_attributes() has made.
void show_attributes(const std::string& kept, Attributes& into);
// Returns the attributes, with the content_type of a body that is JSON unless they have one.
Attributes with_type_of(const JobBody& body, Attributes attributes);
// Returns true if the text has the form 00-TRACE-PARENT-FLAGS, and no id is all zeros.
bool is_traceparent(std::string_view text);

// Returns the object as one word, which put-job takes as an option: spaces become \u0020. Throws
// std::invalid_argument if the text is not a JSON object, or if the word has more than
// queue::kMaxAttributes bytes, or if a content_type is a text of other characters than a header may
// have.
std::string attributes_of(std::string_view json);
std::string attributes_of(const boost::json::object& attributes);

// Returns the attributes after a change (RFC 7396): null removes an attribute, an object is merged,
// any other value replaces the old one. Returns an empty text if no attribute is left. Throws as
// attributes_of().
std::string merged_attributes(std::string_view attributes, const boost::json::object& change);

// --- The fields of a job.

template <>
inline constexpr auto kWords<queue::OnConflict> = words("reject", "ignore", "replace", "keep_due",
                                                        "debounce");
template <>
inline constexpr auto kWords<queue::AtExpiry> = words("drop", "dead");

inline constexpr Rule kIdRule{.least = 1, .most = queue::kLastId};

// --- A job that there is.

enum class State : std::uint8_t { kDelayed, kReady, kReserved, kBuried, kDead };
template <>
inline constexpr auto kWords<State> = words("delayed", "ready", "reserved", "buried", "dead");
// The state of a job that has a key. kDone: it is gone, and the key_window is not over.
enum class KeyState : std::uint8_t { kDelayed, kReady, kReserved, kBuried, kDead, kDone };
template <>
inline constexpr auto kWords<KeyState> = words("delayed", "ready", "reserved", "buried", "dead",
                                               "done");
enum class Ended : std::uint8_t { kByItsWorker, kByTime, kByLoss };
template <>
inline constexpr auto kWords<Ended> = words("failed", "timed_out", "lost");
enum class Died : std::uint8_t { kByAttempts, kByExpiry };
template <>
inline constexpr auto kWords<Died> = words("attempts", "expired");

struct Attempt {
  Moment at;
  Ended ended = Ended::kByItsWorker;
  Bytes worker;
  Bytes error;
};
template <>
inline constexpr auto kFields<Attempt> = fields(field<&Attempt::at>("When it ended."),
                                                field<&Attempt::ended>("How it ended."),
                                                field<&Attempt::worker>("The name of the worker."),
                                                field<&Attempt::error>("What the worker said."));

struct Job : Attributes {
  std::uint64_t id = 0;
  std::string tube;
  std::optional<Bytes> group;
  std::optional<Bytes> key;
  std::optional<Duration> key_window;
  State state = State::kReady;
  std::optional<Died> died;
  queue::Priority priority = 0;
  Moment due;
  Duration ttr;
  Moment created;
  std::optional<Moment> expires_at;
  std::optional<queue::AtExpiry> at_expiry;
  std::optional<RetryPatch> retry;
  std::uint32_t failed_attempts = 0;
  std::optional<std::vector<Attempt>> attempts;
  std::optional<bool> cancel_requested;
  std::optional<Bytes> worker;
  std::optional<std::uint32_t> reserves;
  std::optional<std::uint32_t> timed_out;
  std::optional<std::uint32_t> releases;
  std::optional<std::uint32_t> buries;
  std::optional<std::uint32_t> kicks;
  std::uint64_t body_bytes = 0;
  std::optional<Bytes> body;
  std::optional<std::string> body_error;
  std::optional<std::string> body_url;
  std::optional<std::string> lease;
  std::optional<Moment> lease_ends;
};
template <>
inline constexpr auto kFields<Job> = fields(
    field<&Job::id>("Its number.", kIdRule), field<&Job::tube>("Its tube.", kTubeRule),
    field<&Job::group>("Its group."), field<&Job::key>("Its key."),
    field<&Job::key_window>("How long the key counts after the job."),
    field<&Job::state>("Its state."), field<&Job::died>("Why a dead job is dead."),
    field<&Job::priority>("0 is the most urgent."), field<&Job::due>("When it is, or was, due."),
    field<&Job::ttr>("How long a worker may hold it."), field<&Job::created>("When it was put."),
    field<&Job::expires_at>("No worker gets it from then on."),
    field<&Job::at_expiry>("What becomes of it then."), kAttributeFields<Job>,
    field<&Job::retry>("Its own policy; without one that of the tube."),
    field<&Job::failed_attempts>("How many attempts have failed."),
    field<&Job::attempts>("Those that have failed."),
    field<&Job::cancel_requested>("Its worker is asked to stop."),
    field<&Job::worker>("The name of the worker that has it."),
    field<&Job::reserves>("How often a worker has got it."),
    field<&Job::timed_out>("How often a worker has held it for too long."),
    field<&Job::releases>("How often a worker has given it back."),
    field<&Job::buries>("How often it was buried."), field<&Job::kicks>("How often it was kicked."),
    field<&Job::body_bytes>("How long its body is."), field<&Job::body>("Its body."),
    field<&Job::body_error>("Why its body is not here: it cannot be read."),
    field<&Job::body_url>("Where a body of more than 262144 bytes is: it is not in this answer."),
    field<&Job::lease>("The token, if this request has reserved the job."),
    field<&Job::lease_ends>("When its worker loses the job."));

// Returns the job without a story, body or worker.
Job job_of(const queue::JobStats& stats);
std::vector<Attempt> attempts_of(const std::vector<queue::Attempt>& story);
// Returns the job's entity tag, in quotes. While it is the same, so is the answer about
// the job: nobody has changed it, and it was not reserved, buried, moved or asked to stop.
std::string etag_of(const queue::JobStats& stats);

// The answer for a job that is gone, or that the caller may not read.
struct KnownJob {
  std::uint64_t id = 0;
  std::optional<KeyState> state;
};
template <>
inline constexpr auto kFields<KnownJob> = fields(
    Schema{.help = "The job is gone, or the token may not read it."},
    field<&KnownJob::id>("Its number."),
    field<&KnownJob::state>(
        "What the job is that has the key; done: it is gone, and its key_window is not over."));

// Returns the state of the job whose key a put has met; none if it has met no key.
std::optional<KeyState> key_state_of(const queue::PutOutcome& put);
// Returns its word, with which both protocols answer such a put: "dead". Empty for kNone.
std::string_view name_of(queue::KeyOwner owner);

// --- A job of a put.

struct JobDescription : Attributes {
  JobBody body;
  std::optional<Duration> delay;
  std::optional<Moment> due;
  queue::Priority priority = kUsualPriority;
  Duration ttr{60'000};
  std::string group;
  std::optional<Duration> key_window;
  std::optional<Duration> expires_in;
  std::optional<Moment> expires_at;
  std::optional<queue::AtExpiry> at_expiry;
  Duration spread;
  std::optional<RetryPatch> retry;
};
struct NewJob : JobDescription {
  std::string key;
  std::optional<queue::OnConflict> on_conflict;
};

inline constexpr std::string_view kBodyHelp =
    "A text; or any other JSON value, which is kept as its text, with the content_type "
    "application/json.";
template <class Of>
inline constexpr auto kDescriptionFields = list(
    field<&Of::body, Of>(kBodyHelp, {.is_body = true}),
    field<&Of::priority, Of>("0 is the most urgent.", {.usual = "65536", .in_header = true}),
    field<&Of::delay, Of>("From now on. It excludes due.", {.in_header = true}),
    field<&Of::due, Of>("The past is now.", {.in_header = true}),
    field<&Of::ttr, Of>(
        "How long a worker may hold the job: at least 1s.",
        {.least = queue::kMinTtr, .most = queue::kMaxTtr, .usual = "60s", .in_header = true}),
    field<&Of::group, Of>("Groups of a tube take turns.", {.form = &kKeyForm, .in_header = true}),
    field<&Of::key_window, Of>("How long the key counts when the job is gone.",
                               {.most = queue::kLastDue}),
    field<&Of::expires_in, Of>("No worker gets the job from then on. It excludes expires_at.",
                               {.least = 1}),
    field<&Of::expires_at, Of>("The same, as a moment."),
    field<&Of::at_expiry, Of>("What becomes of the job then.", {.usual = "drop"}),
    field<&Of::spread, Of>("The job is due later by a part of this."),
    field<&Of::retry, Of>("The job's own policy, instead of that of the tube."),
    kAttributeFields<Of>);
template <class Of>
inline constexpr std::array kKeyFields = {
    field<&Of::key, Of>("Only one job of the tube has it.", {.form = &kKeyForm, .in_header = true}),
    field<&Of::on_conflict, Of>("If a job of the tube has the key.",
                                {.usual = "reject", .in_header = true})};

template <>
inline constexpr auto kFields<NewJob> = fields(Schema{.help = "No field is needed."},
                                               kDescriptionFields<NewJob>, kKeyFields<NewJob>);

// Returns what the engine is asked, and notes what does not go together. The order points into the
// description. It lacks the attributes (kept_attributes()).
queue::PutOrder order_of(Reader& reader, const JobDescription& job);
queue::PutOrder order_of(Reader& reader, const NewJob& job);

}  // namespace carillon::server
