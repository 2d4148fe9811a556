// The parsed replies to `stats`, `stats-job` and `stats-tube`: names and values, in their order.
//
//   const StatsFields stats = parse_stats("---\nname: \"mail\"\ncurrent-jobs-ready: 3\n");
//   stats.text("name") == "mail"            stats.number("current-jobs-ready") == 3
//
// The replies are a small subset of YAML: a line "---", then one line "name: value" per field, with
// the value bare or in double quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::cli {

struct StatsField {
  std::string name;
  std::string value;    // without the quotes
  bool quoted = false;  // a quoted value is text, even if it consists of digits

  bool operator==(const StatsField&) const = default;
};

class StatsFields {
 public:
  explicit StatsFields(std::vector<StatsField> fields) : fields_(std::move(fields)) {}

  // Throws Failure if there is no such field.
  const std::string& text(std::string_view name) const;

  // Throws Failure if there is no such field, or its value is not a number from 0 to 2^64-1.
  std::uint64_t number(std::string_view name) const;

  bool has(std::string_view name) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<StatsField> fields_;
};

// Throws a Failure that quotes the first line that is not "name: value".
StatsFields parse_stats(std::string_view yaml);

// Returns one line "name  value" per field, with the values in one column.
std::string to_table(const StatsFields& stats);

// Returns one JSON object on one line, with the fields in their order. Numbers are JSON numbers,
// true and false are booleans. Quoted values and fields that hold names are strings, also if they
// look like numbers: a tube called 7, a server id of digits only.
std::string to_json(const StatsFields& stats);

}  // namespace carillon::cli
