// Tries all orders of events in a small cluster (tests/cluster/explorer.h), and prints what it has
// found: how many worlds, by how many steps at most, or the steps to what is violated.
//
//   cluster_explorer                   # what the tests try
//   cluster_explorer --wide            # more at once
//   cluster_explorer --break kBarrier  # nodes that break a rule (Rule in src/cluster/role.h)
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cluster/entries.h"
#include "cluster/explorer.h"
#include "cluster/rule_names.h"
#include "cluster/scopes.h"

namespace {

using namespace carillon::cluster;            // NOLINT(google-build-using-namespace)
using namespace carillon::cluster::explorer;  // NOLINT(google-build-using-namespace)

// Returns true if nothing is violated.
bool try_all(const Scope& scope, Writes writes, Rule broken) {
  Model model{.writes = writes, .bounds = scope.bounds, .cut = scope.cut, .broken = broken};
  const auto start = std::chrono::steady_clock::now();
  const Found found = explore(model);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%-24s %-13s %9zu worlds, depth %2zu, %10zu steps, %6.1f s %s\n", scope.name,
              name_of(writes).c_str(), found.worlds, found.depth, found.steps, took.count(),
              found.complete ? "" : "INCOMPLETE");
  if (!found.fault.empty()) std::printf("%s:\n%s", found.fault.c_str(), found.story.c_str());
  std::fflush(stdout);
  return found.fault.empty();
}

// Prints an error if there is no such rule.
std::optional<Rule> rule_or_error(std::string_view name) {
  const std::optional<Rule> rule = rule_of(name);
  if (rule) return rule;
  std::string error =
      "cluster_explorer: there is no rule \"" + std::string(name) + "\"; the rules are";
  for (const RuleName& one : kRuleNames) error += " " + std::string(one.name);
  std::fprintf(stderr, "%s\n", error.c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::span<const Scope> scopes = kScopes;
  Rule broken = Rule::kNone;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--wide") {
      scopes = kWideScopes;
    } else if (option == "--break" && i + 1 < argc) {
      const std::optional<Rule> rule = rule_or_error(argv[++i]);
      if (!rule) return 2;
      broken = *rule;
    } else {
      std::fputs("usage: cluster_explorer [--wide] [--break RULE]\n", stderr);
      return 2;
    }
  }
  bool good = true;
  for (const Scope& scope : scopes) {
    for (const Writes writes : {Writes::kConditional, Writes::kUnconditional}) {
      good = try_all(scope, writes, broken) && good;
    }
  }
  return good ? 0 : 1;
}
