// Preconditions of requests (If-Match and If-None-Match, RFC 9110, 13.1), and entity tags.
//
//   void delete_schedule(RequestContext& x, const ScheduleName& asked) {
//     ...
//     require_match(x.request, settings, "the schedule report");     // 412 if it has another tag
//
// A row of the API names the preconditions that its function honours (Operation::headers). All
// others are refused before the function is called: none is ignored (refuse_preconditions()).
//
// Tubes, groups, schedules and endpoints have settings, and counts that move. So their tag has two
// parts, "SETTINGS-ANSWER". If-Match compares the first part: a change of the settings goes on
// though a job has come meanwhile. If-None-Match compares both: the answer 304 says that nothing at
// all is new. The tag of a job is one word (etag_of() in job.h).
//
// Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

#include "server/api/operation.h"

namespace carillon::server {

// Throws Problem if the request has a precondition that the operation does not honour. `operation`
// is null for a path that is no row: a file, which has a tag, or a stream.
void refuse_preconditions(const Request& request, const Operation* operation);

// Returns true if the request knows the answer with this tag: a weak tag does as well (RFC 9110,
// 13.1.2).
bool is_known(const Request& request, std::string_view tag);
// Returns true if the tag is in the list, and is not weak there (RFC 9110, 13.1.1). A tag may be
// the beginning of one: "\"0123-".
bool names_tag(std::string_view list, std::string_view tag);

// --- Things with settings. `settings` describes all that clients can set.

// Throws Problem (412) if If-Match does not name the thing as it is.
void require_match(const Request& request, std::string_view settings, std::string_view what);
// The same for a thing that is not there: If-Match then never holds.
void require_no_match(const Request& request, std::string_view what);
// Throws Problem (412) if the request has `If-None-Match: *`, and the thing is there.
void require_new(const Request& request, bool is_there, std::string_view what);

// Answers with the thing and its tag, or with 304 if a GET knows it.
void answer_tagged(RequestContext& x, unsigned status, std::string body, std::string_view settings);
template <class Answer>
void answer_tagged(RequestContext& x, const Answer& with, std::string_view settings) {
  answer_tagged(x, 200, text_of(with), settings);
}

inline constexpr std::string_view kTold = "ETag";
inline constexpr Success kNotChanged{.status = 304, .help = "The client's copy is right."};

// The rest of the row of an operation that shows a thing with a tag, and of one that changes it.
inline constexpr Operation kShowsTagged{
    .problems = "404", .headers = "If-None-Match", .answer_headers = kTold, .also = kNotChanged};
constexpr Operation changes(std::string_view audited_as) {
  return {.appends = Appends::kYes,
          .audited_as = audited_as,
          .problems = "404",
          .headers = "If-Match",
          .answer_headers = kTold};
}

}  // namespace carillon::server
