// States as texts, and filters for the engine (filters.h).
#include "server/api/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "server/api/names.h"
#include "server/text/whole_number.h"

namespace carillon::server {

namespace {

using queue::bit_of;
using queue::JobState;

constexpr std::array<std::pair<std::string_view, std::uint32_t>, 5> kStates = {
    {{"delayed", bit_of(JobState::kDelayed)},
     {"ready", bit_of(JobState::kReady)},
     {"reserved", bit_of(JobState::kReserved)},
     {"buried", bit_of(JobState::kBuried)},
     {"dead", queue::kDeadJobs}}};

}  // namespace

States Text<States>::parse(std::string_view text) {
  States states{.bits = 0};
  while (true) {
    const std::string_view name = text.substr(0, text.find(','));
    const auto* const found = std::find_if(kStates.begin(), kStates.end(),
                                           [&](const auto& one) { return one.first == name; });
    if (found == kStates.end())
      throw std::invalid_argument(
          fmt::format("\"{}\": delayed, ready, reserved, buried or dead", name));
    states.bits |= found->second;
    if (name.size() == text.size()) return states;
    text.remove_prefix(name.size() + 1);
  }
}

std::string Text<States>::show(const States& states) {
  std::string text;
  for (const auto& [name, bit] : kStates)
    if ((states.bits & bit) != 0) text.append(text.empty() ? "" : ",").append(name);
  return text;
}

queue::JobCursor Text<queue::JobCursor>::parse(std::string_view text) {
  if (const auto cursor = queue::to_cursor(text)) return *cursor;
  throw std::invalid_argument(
      fmt::format("\"{}\": not what an answer calls next_page_token", text));
}

std::string Text<queue::JobCursor>::show(const queue::JobCursor& cursor) {
  return queue::to_text(cursor);
}

PlaceToken Text<PlaceToken>::parse(std::string_view text) {
  const auto place = whole_number<std::uint64_t>(text);
  if (place && *place > 0) return {.place = *place};
  throw std::invalid_argument(
      fmt::format("\"{}\": not what an answer calls next_page_token", text));
}

std::string Text<PlaceToken>::show(PlaceToken token) {
  return std::to_string(token.place);
}

// An empty one is that of the first page.
const Form kNameTokenForm{[](std::string_view text) { return text.empty() || is_tube_name(text); },
                          "not what an answer calls next_page_token"};

queue::JobFilter Filter::jobs() const {
  queue::JobFilter filter;
  if (state) filter.states = state->bits;
  if (group) filter.group = group->bytes;
  if (key_prefix) filter.key_prefix = key_prefix->bytes;
  if (due_after) filter.due_from = due_after->at;
  if (due_before) filter.due_before = due_before->at;
  return filter;
}

}  // namespace carillon::server
