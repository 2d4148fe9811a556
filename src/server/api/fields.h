// Reads the fields of a JSON object, and notes each that is wrong, with its JSON pointer.
//
//   FieldFaults faults;
//   Fields job(object, "", faults);
//   const auto priority = job.number("priority", 0, UINT32_MAX);
//   const auto delay = job.duration("delay");        // "30s" or "PT30S", in ms
//   job.finish();                                    // notes fields that nobody asked for
//   faults.throw_if_any();   // Problem: {"pointer":"/delay","detail":"\"30\": not a duration"}
//
// Nothing is clamped: a value out of its range is a fault. A field that is null counts as not
// given.
// Thread safety: none.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/job.h"
#include "server/api/problem.h"

namespace carillon::server {

class FieldFaults {
 public:
  // So many are told.
  static constexpr std::size_t kMost = 20;

  void add(std::string pointer, std::string detail) {
    if (!is_full()) faults_.push_back({std::move(pointer), std::move(detail)});
  }
  bool empty() const { return faults_.empty(); }
  bool is_full() const { return faults_.size() == kMost; }
  // Throws a Problem with all faults.
  void throw_if_any();

 private:
  std::vector<FieldFault> faults_;
};

class Fields {
 public:
  // `at` is the pointer of the object: empty for the whole document. The object and the faults must
  // outlive this.
  Fields(const boost::json::object& object, std::string at, FieldFaults& faults)
      : object_(object), at_(std::move(at)), faults_(faults) {}

  bool has(std::string_view name) { return find(name) != nullptr; }
  std::optional<std::string_view> text(std::string_view name);
  std::optional<std::uint64_t> number(std::string_view name, std::uint64_t least,
                                      std::uint64_t most);
  std::optional<bool> flag(std::string_view name);
  // Milliseconds: 250ms, 3s, 1h30m (duration.h).
  std::optional<queue::Millis> duration(std::string_view name);
  // UTC milliseconds: a number, or RFC 3339.
  std::optional<queue::UtcMs> moment(std::string_view name);
  // One of the texts: its position.
  std::optional<std::size_t> choice(std::string_view name,
                                    std::initializer_list<std::string_view> of);
  const boost::json::object* object(std::string_view name);
  const boost::json::array* array(std::string_view name);
  // A text, or a number as its digits.
  std::optional<std::string> word(std::string_view name);
  // The field is there, and null: a patch takes the thing away (RFC 7396).
  bool is_null(std::string_view name);
  std::string pointer(std::string_view name) const;
  void fault(std::string_view name, std::string detail) {
    faults_.add(pointer(name), std::move(detail));
  }

  void finish();

 private:
  const boost::json::value* find(std::string_view name);

  const boost::json::object& object_;
  std::string at_;
  FieldFaults& faults_;
  std::set<std::string_view, std::less<>> known_;
};

// The most values in the JSON of a request, and in that of a batch of jobs.
inline constexpr std::size_t kMostParts = 1'000;
inline constexpr std::size_t kMostPartsOfBatch = 20'000;

// Returns the object that the text is. Throws Problem.
boost::json::object parse_object(std::string_view text, std::size_t most_parts = kMostParts);

}  // namespace carillon::server
