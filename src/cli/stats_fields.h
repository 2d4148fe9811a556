// What `stats`, `stats-job` and `stats-tube` answer, read: the names and values in their order.
//
//   const StatsFields stats = parse_stats("---\nname: \"mail\"\ncurrent-jobs-ready: 3\n");
//   stats.text("name") == "mail"            stats.number("current-jobs-ready") == 3
//
// The replies are a small part of YAML: a line "---", then one "name: value" each, the value bare
// or in double quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::cli {

struct StatsField {
  std::string name;
  std::string value;    // without the quotes
  bool quoted = false;  // a quoted value is text, whatever it looks like

  bool operator==(const StatsField&) const = default;
};

class StatsFields {
 public:
  explicit StatsFields(std::vector<StatsField> fields) : fields_(std::move(fields)) {}

  /// Throw Failure if there is no such field, or it is no number from 0 to 2^64-1.
  const std::string& text(std::string_view name) const;
  std::uint64_t number(std::string_view name) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<StatsField> fields_;
};

/// Throws Failure, which names the line that is not "name: value".
StatsFields parse_stats(std::string_view yaml);

/// One "name  value" per line, the values in one column.
std::string to_table(const StatsFields& stats);

/// One JSON object on one line, the fields in their order. Numbers are numbers, true and false are
/// booleans; quoted values and the fields that hold names (a tube that is called 7, a server id of
/// digits only) are strings.
std::string to_json(const StatsFields& stats);

}  // namespace carillon::cli
