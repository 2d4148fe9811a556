// The lines of a page of groups (group_page.h).
#include "server/beanstalk/group_page.h"

#include <algorithm>
#include <cstdint>

#include "server/beanstalk/option_line.h"

namespace carillon::server::beanstalk {
namespace {

// The engine is asked for this many at once: so a full page drops no more than these.
constexpr std::size_t kGroupsAtOnce = 32;

void add_line(std::string& text, std::string_view tube, const queue::GroupPage::Group& group) {
  const queue::JobCounts& jobs = group.stats.jobs;
  OptionLine line(text);
  line.word("tube", tube);
  line.text("group", group.name);
  line.field("ready", jobs.ready);
  line.field("reserved", jobs.reserved);
  line.field("delayed", jobs.delayed);
  line.field("buried", jobs.buried);
  line.field("weight", group.stats.settings.weight);
  line.limits(group.stats.settings.limits);
  line.end();
}

}  // namespace

std::optional<std::string> group_page(queue::Engine& engine, queue::Now now, std::string_view tube,
                                      const GroupListOptions& options) {
  std::string text;
  std::uint32_t next = options.after;
  for (std::size_t left = options.limit; left > 0 && text.size() < kGroupPageBytes;) {
    const auto page = engine.list_groups(now, tube, next, std::min(left, kGroupsAtOnce));
    if (!page) return std::nullopt;
    for (const queue::GroupPage::Group& group : page->groups) add_line(text, tube, group);
    left -= page->groups.size();
    next = page->next;
    if (next == 0) break;
  }
  OptionLine end(text);
  if (next == 0) {
    end.field("next", "null");
  } else {
    end.word("next", std::to_string(next));
  }
  end.end();
  return text;
}

}  // namespace carillon::server::beanstalk
