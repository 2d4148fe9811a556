// Filters as texts of options (filters.h).
#include "server/http/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "server/api/problem.h"

namespace carillon::server::http {

namespace {

using beanstalk::ListOptions;
using beanstalk::ListOptionsOf;

struct Name {
  std::string_view here;
  std::string_view there;  // the option
};
constexpr std::array kFilter = {Name{"state", "state"}, Name{"group", "group"},
                                Name{"key_prefix", "key-prefix"}, Name{"due_after", "due-after"},
                                Name{"due_before", "due-before"}};
constexpr std::array kPageNames = {Name{"page_size", "limit"}, Name{"page_token", "after"}};

// Returns why the value is wrong; none if it is right.
std::optional<std::string> fault_of(Name name, const std::string& value, ListOptionsOf of) {
  if (value.empty() || value.find(' ') != std::string::npos)
    return fmt::format("\"{}\": a value has no space, and is not empty", value);
  try {
    beanstalk::parse_list_options(fmt::format("{}={}", name.there, value), of);
  } catch (const std::invalid_argument& error) {
    std::string_view why = error.what();
    const std::string start = fmt::format("{}: ", name.there);
    if (why.starts_with(start)) why.remove_prefix(start.size());
    return std::string(why);
  }
  return std::nullopt;
}

void append(std::string& options, Name name, const std::string& value) {
  options += fmt::format("{}{}={}", options.empty() ? "" : " ", name.there, value);
}

}  // namespace

ListOptions read_job_query(const Request& request) {
  FieldFaults faults;
  std::string options;
  for (const auto& asked : request.query) {
    const auto& [name, value] = asked;
    const auto is_it = [&](const Name& one) { return one.here == asked.first; };
    const auto* found = std::find_if(kFilter.begin(), kFilter.end(), is_it);
    if (found == kFilter.end()) found = std::find_if(kPageNames.begin(), kPageNames.end(), is_it);
    if (auto why = fault_of(*found, value, ListOptionsOf::kList))
      faults.add("?" + name, *std::move(why));
    append(options, *found, value);
  }
  faults.throw_if_any();
  try {
    return beanstalk::parse_list_options(options, ListOptionsOf::kList);
  } catch (const std::invalid_argument& error) {  // a name comes twice
    throw Problem(kBadRequest, error.what());
  }
}

Page read_page(const Request& request) {
  Page page;
  for (const auto& [name, value] : request.query) {
    if (name == "page_token") {
      page.after = value;
      continue;
    }
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, page.size);
    if (error == std::errc() && rest == end && page.size > 0 && page.size <= Page::kMost) continue;
    throw wrong_query(name, fmt::format("\"{}\": not a number from 1 to {}", value, Page::kMost));
  }
  return page;
}

ListOptions read_filter(Fields& fields, ListOptionsOf of, const std::string& to) {
  std::string options;
  for (const Name& name : kFilter) {
    const auto value = fields.word(name.here);
    if (!value) continue;
    if (const auto why = fault_of(name, *value, ListOptionsOf::kCancel)) {
      fields.fault(name.here, *why);
    } else {
      append(options, name, *value);
    }
  }
  if (!to.empty()) append(options, {"to", "to"}, to);
  try {
    return beanstalk::parse_list_options(options, of);
  } catch (const std::invalid_argument& error) {
    fields.fault("state", error.what());
    return {};
  }
}

}  // namespace carillon::server::http
