// An operation of the API: one row says what it is called, what it takes and answers, who may call
// it, and which function carries it out.
//
//   constexpr Operation kPauseTube{
//       .method = "POST", .path = "/v1/tubes/{tube}:pause", .name = "pauseTube", .tag = "tubes",
//       .summary = "No job goes out for a while. A restart ends a pause.",
//       .rights = {Needs::kAdmin, Reach::kTube}, .appends = Appends::kNo,
//       .audited_as = "tube:pause", .problems = "400 404 422",
//       .request = &kShape<PauseTube>, .run = run<PauseTube, pause_tube>};
//
//   void pause_tube(RequestContext& x, const PauseTube& asked);
//
// From the row come the reading of the request, each error about a field of it, what openapi.json
// says, and the rights. operations() (operations.h) has all rows.
//
// Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "server/api/caller.h"
#include "server/api/field.h"
#include "server/api/request_context.h"

namespace carillon::server {

// Whether an operation may add changes to the store. One that does waits until the store has room.
enum class Appends : std::uint8_t { kNo, kYes };

struct Operation {
  std::string_view method;
  // A part in braces is a field of the request: /v1/tubes/{tube}:pause.
  std::string_view path;
  std::string_view name;  // pauseTube: openapi.json calls it operationId
  std::string_view tag;
  std::string_view summary;
  Rights rights;
  Appends appends;
  std::string_view audited_as = {};  // empty: the audit does not name it
  unsigned status = 0;               // 0: 200 with an answer, 204 without one
  std::string_view problems;         // the other statuses that it may answer, besides 401 and 403
  const Shape* request;
  const Shape* answer = nullptr;  // null: none
  void (*run)(RequestContext&);

  constexpr unsigned status_of_answer() const {
    return status != 0 ? status : answer == nullptr ? 204 : 200;
  }
  constexpr bool has_query() const { return method == "GET" || method == "DELETE"; }
  // Returns true if the field stands in the path.
  bool is_in_path(std::string_view field) const;
  // Returns true if a field stands in the body.
  bool has_body() const;
};

// Reads the fields of the path, and those of the query or the body, and notes what is wrong. Throws
// Problem if the path or the JSON is wrong.
Reader reader_of(const RequestContext& x);
void read_request(const RequestContext& x, Reader& reader, const Shape& shape, void* into);

// Carries the operation out: reads the request, and calls the function with it. A function that
// takes the Reader, too, may find more faults, and throws all of them.
template <class Request, auto function>
void run(RequestContext& x) {
  Request request{};
  Reader reader = reader_of(x);
  read_request(x, reader, kShape<Request>, &request);
  if constexpr (std::is_invocable_v<decltype(function), RequestContext&, const Request&, Reader&>) {
    function(x, request, reader);
  } else {
    reader.throw_if_any();
    function(x, request);
  }
}

// Answers with the fields of a struct. The answer leaves when every change so far is durable.
void answer_fields(RequestContext& x, const Shape& shape, const void* answer);
template <class Answer>
void answer(RequestContext& x, const Answer& with) {
  answer_fields(x, kShape<Answer>, &with);
}

}  // namespace carillon::server
