// An operation of the API. One row has its name, its request, its answers, the rights that it
// needs, and its function.
//
//   void pause_tube(RequestContext& x, const PauseTube& asked) { ... }
//
//   constexpr auto kRows = rows("tubes",
//       operation<pause_tube>("POST /v1/tubes/{tube}:pause", {Needs::kAdmin, Reach::kTube},
//                             "No job goes out for a while. A restart ends a pause.",
//                             {.audited_as = "tube:pause", .problems = "404"}));
//
// The name of the operation is that of the function: pauseTube. The reader of the request, the
// errors about its fields, openapi.json and the check of rights follow from the row. operations()
// (operations.h) has all rows.
//
// Thread safety: pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "server/api/caller.h"
#include "server/api/field.h"
#include "server/api/request_context.h"

namespace carillon::server {

// Says whether an operation may add changes to the store: then it waits until the store has room.
enum class Appends : std::uint8_t { kNo, kYes };

// Where the answer is kept for the same request with the same Idempotency-Key (idempotency.h): in
// the server's memory, or by the engine with what the function puts.
enum class FirstAnswer : std::uint8_t { kInMemory, kStored };

// Another status with which an operation succeeds.
struct Success {
  unsigned status = 0;
  std::string_view help = {};
  const Shape* answer = nullptr;  // null: none
};

// A request without a field.
struct AskedNothing {};
template <>
inline constexpr auto kFields<AskedNothing> = fields(Schema{"Nothing"});

struct Operation {
  std::string_view name = {};  // the operationId in openapi.json: pauseTube
  std::string_view tag = {};
  Appends appends = Appends::kNo;
  FirstAnswer first_answer = FirstAnswer::kInMemory;  // a GET keeps no answer
  // A PATCH whose body is merged into that of a PUT (RFC 7396). Its function reads it
  // (read_merged()).
  bool merges = false;
  std::string_view audited_as = {};  // empty: the audit does not name it
  unsigned status = 0;               // 0: 200 with an answer, 204 without one
  // The other statuses that it may answer, but for those that follow from the request: 401, 403,
  // 400, 412, 415 of a PATCH or of a plain body, 422 of what has an Idempotency-Key.
  std::string_view problems = {};
  std::string_view headers = {};         // that the function reads: parameters of openapi.json
  const Shape* brief = nullptr;          // for callers who may not see the whole answer
  std::string_view media = {};           // the type of an answer that is no JSON
  std::string_view answer_headers = {};  // headers of openapi.json
  Success also = {};
  // operation<function>() sets these.
  std::string_view method = {};
  // A name in braces is a field of the request: /v1/tubes/{tube}:pause.
  std::string_view path = {};
  std::string_view summary = {};
  Rights rights = {};
  const Shape* request = nullptr;
  const Shape* answer = nullptr;  // null: none
  void (*run)(RequestContext&) = nullptr;

  constexpr unsigned status_of_answer() const {
    return status != 0 ? status : answer == nullptr ? 204 : 200;
  }
  constexpr bool has_query() const { return method == "GET" || method == "DELETE"; }
  // Returns true if the path contains the field.
  bool is_in_path(std::string_view field) const;
  // Returns true if a field comes in the body.
  bool has_body() const;
  // Returns true if `headers` names this one.
  bool reads_header(std::string_view header) const;
  // Returns true if it takes a body that is not JSON: that of a job.
  bool takes_plain_body() const;
};

// Returns true if the request's body is no JSON with fields, and headers are the fields.
bool has_plain_body(const RequestContext& x);

// Reads the fields of the path, and those of the query or the body, and notes what is wrong. Throws
// Problem if the path or the JSON is wrong.
Reader reader_of(const RequestContext& x);
void read_request(RequestContext& x, Reader& reader, const Shape& shape, void* into);

// Merges the body of the request into `settings`, which write() has made of a struct of the shape,
// and reads the result. REQUIRES: the operation merges.
void read_merged(const RequestContext& x, Reader& reader, boost::json::object settings,
                 const Shape& shape, void* into);

// Returns the fields of a struct as the text of a JSON.
std::string text_of_fields(const Shape& shape, const void* from);
template <class T>
std::string text_of(const T& from) {
  return text_of_fields(kShape<T>, &from);
}

// Answers with the fields of a struct, as soon as every change so far is durable.
void answer_fields(RequestContext& x, unsigned status, const Shape& shape, const void* answer,
                   std::string location = {});
template <class Answer>
void answer(RequestContext& x, const Answer& with) {
  answer_fields(x, x.operation->status_of_answer(), kShape<Answer>, &with);
}
// Answers at once: the answer describes only this server, at this moment.
void answer_at_once(RequestContext& x, const boost::json::object& with);
// Answers with 201 if the request has made something, else with 200.
template <class Answer>
void answer_made(RequestContext& x, const Answer& with, bool is_new) {
  answer_fields(x, is_new ? 201 : 200, kShape<Answer>, &with);
}
// Answers with 202: the change goes on, and `location` shows its progress.
template <class Answer>
void answer_later(RequestContext& x, const Answer& with, std::string location) {
  answer_fields(x, 202, kShape<Answer>, &with, std::move(location));
}

namespace detail {

template <class Function>
struct Signature;
template <class Told, class Asked, class... More>
struct Signature<Told (*)(RequestContext&, const Asked&, More...)> {
  using Answer = Told;
  using Request = Asked;
  static constexpr bool kTakesReader = sizeof...(More) == 1;
};

// "pauseTube" for pause_tube.
template <auto function>
struct CamelCase {
  static constexpr std::string_view kFrom = name_of_value<function>();
  static constexpr std::size_t kSize = kFrom.size() - std::count(kFrom.begin(), kFrom.end(), '_');
  static constexpr std::array<char, kSize> kText = [] {
    std::array<char, kSize> text{};
    auto next = text.begin();
    bool begins = false;
    for (const char c : kFrom) {
      if (c != '_') *next++ = begins ? static_cast<char>(c - 'a' + 'A') : c;
      begins = c == '_';
    }
    return text;
  }();
};
template <auto function>
inline constexpr std::string_view kCamelCase{CamelCase<function>::kText.data(),
                                             CamelCase<function>::kSize};

template <auto function>
void run(RequestContext& x) {
  using As = Signature<decltype(function)>;
  typename As::Request request{};
  Reader reader = reader_of(x);
  read_request(x, reader, kShape<typename As::Request>, &request);
  if constexpr (As::kTakesReader) {
    function(x, request, reader);
  } else {
    reader.throw_if_any();
    if constexpr (std::is_void_v<typename As::Answer>) {
      function(x, request);
    } else {
      server::answer(x, function(x, request));
    }
  }
}

}  // namespace detail

// Makes the row of a function, which has one of these forms:
//
//   Answer f(RequestContext&, const Request&)          returns the answer of the row
//   void f(RequestContext&, const Request&)            answers by itself, perhaps later
//   void f(RequestContext&, const Request&, Reader&)   may note more faults, and throws all
//
// `Answer` is what a function answers by itself; void: nothing. `route` has the method and the
// path, `row` the rest.
template <auto function, class Answer = typename detail::Signature<decltype(function)>::Answer>
consteval Operation operation(std::string_view route, Rights rights, std::string_view summary,
                              Operation row = {}) {
  const std::size_t space = route.find(' ');
  row.method = route.substr(0, space);
  row.path = route.substr(space + 1);
  row.rights = rights;
  row.summary = summary;
  if (row.name.empty()) row.name = detail::kCamelCase<function>;
  row.request = &kShape<typename detail::Signature<decltype(function)>::Request>;
  if constexpr (!std::is_void_v<Answer>) row.answer = &kShape<Answer>;
  row.run = detail::run<function>;
  return row;
}

// Makes a table of rows. A row without a tag gets this one.
template <class... Rows>
consteval std::array<Operation, sizeof...(Rows)> rows(std::string_view tag, const Rows&... all) {
  std::array<Operation, sizeof...(Rows)> table = {all...};
  for (Operation& row : table)
    if (row.tag.empty()) row.tag = tag;
  return table;
}

}  // namespace carillon::server
