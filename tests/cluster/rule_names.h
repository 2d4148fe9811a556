// The rules by the names that they have in src/cluster/role.h: a number would change with each new
// rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/role.h"

namespace carillon::cluster {

struct RuleName {
  Rule rule;
  std::string_view name;
};

inline constexpr RuleName kRuleNames[] = {
    {Rule::kLogId, "kLogId"},         {Rule::kIntact, "kIntact"},
    {Rule::kPlace, "kPlace"},         {Rule::kEveryClaim, "kEveryClaim"},
    {Rule::kNotBehind, "kNotBehind"}, {Rule::kNoGap, "kNoGap"},
    {Rule::kChain, "kChain"},         {Rule::kOwner, "kOwner"},
    {Rule::kEpoch, "kEpoch"},         {Rule::kRepeat, "kRepeat"},
    {Rule::kBarrier, "kBarrier"},     {Rule::kCommit, "kCommit"},
    {Rule::kReadBack, "kReadBack"},   {Rule::kUnknown, "kUnknown"},
    {Rule::kOwnClaim, "kOwnClaim"},   {Rule::kReadToClaim, "kReadToClaim"},
    {Rule::kDrop, "kDrop"},           {Rule::kOwnOnce, "kOwnOnce"},
    {Rule::kClock, "kClock"},
};
static_assert(std::size(kRuleNames) == static_cast<std::size_t>(Rule::kClock),
              "kClock is the last");

// "kNone" for Rule::kNone, and for a rule that is not in the table.
inline std::string name_of(Rule rule) {
  const auto* const found = std::find_if(std::begin(kRuleNames), std::end(kRuleNames),
                                         [rule](const RuleName& one) { return one.rule == rule; });
  return std::string(found == std::end(kRuleNames) ? "kNone" : found->name);
}

// Nothing if no rule has this name.
inline std::optional<Rule> rule_of(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kRuleNames), std::end(kRuleNames),
                                         [name](const RuleName& one) { return one.name == name; });
  return found == std::end(kRuleNames) ? std::nullopt : std::optional(found->rule);
}

}  // namespace carillon::cluster
