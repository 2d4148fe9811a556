// Operations on tubes and their groups: numbers, settings and pauses (tubes.h).
#include "server/api/tubes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>

#include "carillon/queue/engine.h"
#include "server/api/names.h"
#include "server/api/operations.h"
#include "server/api/preconditions.h"
#include "server/api/problem.h"
#include "server/text/whole_number.h"

namespace carillon::server {

Problem no_such_tube(std::string_view tube) {
  return Problem(kNotFound, fmt::format("there is no tube \"{}\"", tube));
}

std::string outcome_of(const queue::Kick& kick) {
  const std::string done = fmt::format("kicked {}", kick.kicked);
  return kick.error.empty() ? done : done + ", then: " + kick.error;
}

queue::TubeStats found_tube(RequestContext& x, const std::string& tube) {
  auto stats = x.engine().tube_stats(x.now(), tube);
  if (!stats) throw no_such_tube(tube);
  return *std::move(stats);
}

namespace {

std::string settings_of(const queue::TubeSettings& settings);

}  // namespace

void require_tube_match(RequestContext& x, const std::string& tube) {
  require_match(x.request, settings_of(x.engine().tube_settings(tube)), "the tube " + tube);
}

namespace {

// What the tag of a tube is made of: its settings alone.
std::string settings_of(const queue::TubeSettings& settings) {
  queue::TubeStats bare;
  bare.settings = settings;
  return text_of(tube_of(bare));
}

std::string settings_of(const queue::GroupSettings& settings) {
  return text_of(group_of("", "", {.jobs = {}, .settings = settings}));
}

// Answers with the tube after a change. The engine forgets at once a tube without settings that
// nobody uses.
void answer_tube(RequestContext& x, const std::string& tube) {
  queue::TubeStats empty;
  empty.name = tube;
  const queue::TubeStats stats = x.engine().tube_stats(x.now(), tube).value_or(empty);
  answer_tagged(x, tube_of(stats), settings_of(stats.settings));
}

void pause_for(RequestContext& x, const std::string& tube, queue::Millis duration) {
  found_tube(x, tube);
  require_tube_match(x, tube);
  x.engine().pause(x.now(), tube, duration);
  answer_tube(x, tube);
}

queue::TubeSettings changed(Reader& reader, const PatchTube& asked, queue::TubeSettings settings) {
  if (asked.limits.given && !asked.limits.value) settings.limits = settings.put_rate = {};
  if (asked.limits.value) {
    reader.within("limits",
                  [&] { apply(reader, *asked.limits.value, settings.limits, settings.put_rate); });
  }
  if (asked.retry.given && !asked.retry.value) settings.retry = {};
  if (asked.retry.value)
    reader.within("retry", [&] { apply(reader, *asked.retry.value, settings.retry); });
  if (asked.draining.given) settings.refuses_puts = asked.draining.value.value_or(false);
  if (asked.retention.given) settings.retention = asked.retention.value.value_or(Duration()).ms;
  return settings;
}

void kick(RequestContext& x, const std::shared_ptr<queue::Kick>& kick_of) {
  x.engine().kick(x.client(), x.now(), *kick_of);
  if (!kick_of->done) return x.later([kick_of](RequestContext& then) { kick(then, kick_of); });
  if (!kick_of->error.empty()) x.service().report_store_failure(kick_of->error);
  x.outcome = outcome_of(*kick_of);
  Kicked told{.kicked = kick_of->kicked, .error = {}};
  if (!kick_of->error.empty()) told.error = kick_of->error;
  answer(x, told);
}

// --- The list of tubes in the order of their names. The engine has them in no order, so each page
// reads all names.

struct TubeList {
  std::size_t size = 0;
  std::string after;       // the last name on the page before
  std::uint64_t left = 0;  // names that were not compared yet
  std::set<std::string> names = {};
  TubePage page = {};
};

void show_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list) {
  constexpr int kAtOnce = 50;
  for (int n = 0; n < kAtOnce && !list->names.empty(); ++n) {
    list->after = list->names.extract(list->names.begin()).value();
    if (const auto stats = x.engine().tube_stats(x.now(), list->after))
      list->page.tubes.push_back(tube_of(*stats));
    x.hold(2 << 10);
  }
  if (!list->names.empty())
    return x.later([list](RequestContext& then) { show_tubes(then, list); });
  if (list->left > 0) list->page.next_page_token = list->after;
  answer(x, list->page);
}

void begin_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list);

void find_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list) {
  const auto names = x.engine().next_tubes(x.client());
  if (!names) return begin_tubes(x, list);  // too many tubes were forgotten meanwhile
  list->left -= names->size();
  for (const std::string& name : *names)
    if (name > list->after && x.may_use(name)) list->names.insert(name);
  // One name more than the page has shows that another page follows.
  while (list->names.size() > list->size + 1) list->names.erase(std::prev(list->names.end()));
  if (list->left > 0) return x.later([list](RequestContext& then) { find_tubes(then, list); });
  const bool goes_on = list->names.size() > list->size;
  if (goes_on) list->names.erase(std::prev(list->names.end()));
  list->left = goes_on ? 1 : 0;
  show_tubes(x, list);
}

void begin_tubes(RequestContext& x, const std::shared_ptr<TubeList>& list) {
  list->names.clear();
  list->left = x.engine().list_tubes(x.client()).tubes;
  find_tubes(x, list);
}

void list_tubes(RequestContext& x, const ListByName& asked) {
  begin_tubes(
      x, std::make_shared<TubeList>(TubeList{.size = asked.page_size, .after = asked.page_token}));
}

// --- The list of a tube's groups, in the order in which they came.

struct GroupList {
  std::string tube;
  std::size_t left = 0;
  std::uint32_t next = 0;
  GroupPage page = {};
};

void show_groups(RequestContext& x, const std::shared_ptr<GroupList>& list) {
  constexpr std::size_t kAtOnce = 50;
  const auto part =
      x.engine().list_groups(x.now(), list->tube, list->next, std::min(list->left, kAtOnce));
  if (!part && list->next == 0) throw no_such_tube(list->tube);
  list->next = part ? part->next : 0;  // the tube may be gone before its last page
  if (part) {
    x.hold(part->groups.size() << 10);
    list->left -= part->groups.size();
    for (const queue::GroupPage::Group& group : part->groups)
      list->page.groups.push_back(group_of(list->tube, group.name, group.stats));
  }
  if (list->next != 0 && list->left > 0)
    return x.later([list](RequestContext& then) { show_groups(then, list); });
  if (list->next != 0) list->page.next_page_token = PlaceToken{list->next};
  answer(x, list->page);
}

void list_groups(RequestContext& x, const ListGroups& asked) {
  const auto next =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(asked.page_token.place, UINT32_MAX));
  show_groups(x, std::make_shared<GroupList>(
                     GroupList{.tube = asked.tube, .left = asked.page_size, .next = next}));
}

}  // namespace

Tube tube_of(const queue::TubeStats& stats) {
  Tube tube{.name = stats.name,
            .jobs = stats.jobs,
            .groups = stats.groups,
            .using_ = stats.using_,
            .watching = stats.watching,
            .waiting = stats.waiting,
            .acked = stats.deletes,
            .puts_too_fast = stats.puts_too_fast,
            .dead_deleted = stats.dead_deleted,
            .paused = stats.pause > 0,
            .draining = stats.settings.refuses_puts,
            .limits = limits_of(stats.settings.limits, stats.settings.put_rate),
            .pause_left_ms = {},
            .retry = {},
            .retention = {}};
  if (stats.pause > 0) tube.pause_left_ms = stats.pause_left;
  if (stats.settings.retry != queue::RetryPolicy()) tube.retry = retry_of(stats.settings.retry);
  if (stats.settings.retention > 0) tube.retention = Duration{stats.settings.retention};
  return tube;
}

Group group_of(std::string_view tube, std::string_view name, const queue::GroupStats& stats) {
  return {.tube = std::string(tube),
          .name = {std::string(name)},
          .jobs = stats.jobs,
          .weight = stats.settings.weight,
          .limits = limits_of(stats.settings.limits)};
}

namespace {

void get_tube(RequestContext& x, const TubeName& asked) {
  const queue::TubeStats stats = found_tube(x, asked.tube);
  answer_tagged(x, tube_of(stats), settings_of(stats.settings));
}

// Makes the tube if it does not exist.
void patch_tube(RequestContext& x, const PatchTube& asked, Reader& reader) {
  const queue::TubeSettings settings = changed(reader, asked, x.engine().tube_settings(asked.tube));
  reader.throw_if_any();
  if (!x.engine().tube_stats(x.now(), asked.tube))
    require_no_match(x.request, "the tube " + asked.tube);
  require_tube_match(x, asked.tube);
  x.engine().set_tube(x.now(), asked.tube, settings);
  answer_tube(x, asked.tube);
}

void get_group(RequestContext& x, const GroupName& asked) {
  const auto stats = x.engine().group_stats(x.now(), asked.tube, asked.group);
  if (!stats)
    throw Problem(kNotFound, fmt::format("tube {} has no group {}", asked.tube, asked.group));
  answer_tagged(x, group_of(asked.tube, asked.group, *stats), settings_of(stats->settings));
}

void patch_group(RequestContext& x, const PatchGroup& asked, Reader& reader) {
  const auto stats = x.engine().group_stats(x.now(), asked.tube, asked.group);
  const std::string what = fmt::format("the group {} of tube {}", asked.group, asked.tube);
  queue::GroupSettings settings = stats ? stats->settings : queue::GroupSettings();
  stats ? require_match(x.request, settings_of(settings), what) : require_no_match(x.request, what);
  if (asked.weight.given) settings.weight = asked.weight.value.value_or(1);
  if (asked.limits.given && !asked.limits.value) settings.limits = {};
  if (asked.limits.value)
    reader.within("limits", [&] { apply(reader, *asked.limits.value, settings.limits); });
  reader.throw_if_any();
  x.engine().set_group(x.now(), asked.tube, asked.group, settings);
  // The engine forgets at once a group without settings that has no jobs.
  const queue::GroupStats bare{.jobs = {}, .settings = settings};
  const auto after = x.engine().group_stats(x.now(), asked.tube, asked.group).value_or(bare);
  answer_tagged(x, group_of(asked.tube, asked.group, after), settings_of(settings));
}

void pause_tube(RequestContext& x, const PauseTube& asked) {
  pause_for(x, asked.tube, asked.duration.value_or(Duration{queue::kMaxTtr}).ms);
}

void resume_tube(RequestContext& x, const TubeName& asked) {
  pause_for(x, asked.tube, 0);
}

// Like the command kick: kicks buried jobs, or delayed jobs if no job is buried.
void kick_tube(RequestContext& x, const KickTube& asked) {
  found_tube(x, asked.tube);
  require_tube_match(x, asked.tube);
  x.use_tube();
  kick(x, std::make_shared<queue::Kick>(queue::Kick{.bound = asked.max}));
}

// --- The rows.

constexpr auto kTubeRows = rows(
    "tubes",
    operation<list_tubes, TubePage>("GET /v1/tubes", {Needs::kRead, Reach::kChecked},
                                    "Lists tubes by name."),
    operation<list_groups, GroupPage>(
        "GET /v1/tubes/{tube}/groups", {Needs::kRead, Reach::kTube},
        "Lists the groups of a tube, in the order in which they came.", {.problems = "404"}),
    operation<get_tube, Tube>("GET /v1/tubes/{tube}", {Needs::kRead, Reach::kTube},
                              "Shows the counts and the settings of a tube.", kShowsTagged),
    operation<patch_tube, Tube>(
        "PATCH /v1/tubes/{tube}", {Needs::kAdmin, Reach::kTube},
        "Changes the settings of a tube (RFC 7396), and makes the tube if it does not exist.",
        {.appends = Appends::kYes,
         .audited_as = "tube:patch",
         .problems = "503",
         .headers = "If-Match",
         .answer_headers = kTold}),
    operation<pause_tube, Tube>("POST /v1/tubes/{tube}:pause", {Needs::kAdmin, Reach::kTube},
                                "No job goes out for a while. A restart ends a pause.",
                                {.audited_as = "tube:pause",
                                 .problems = "404",
                                 .headers = "If-Match",
                                 .answer_headers = kTold}),
    operation<resume_tube, Tube>("POST /v1/tubes/{tube}:resume", {Needs::kAdmin, Reach::kTube},
                                 "Jobs go out again.",
                                 {.audited_as = "tube:resume",
                                  .problems = "404",
                                  .headers = "If-Match",
                                  .answer_headers = kTold}),
    operation<kick_tube, Kicked>("POST /v1/tubes/{tube}:kick", {Needs::kAdmin, Reach::kTube},
                                 "Makes buried jobs ready, or delayed jobs if no job is buried.",
                                 {.appends = Appends::kYes,
                                  .audited_as = "tube:kick",
                                  .problems = "404",
                                  .headers = "If-Match"}),
    operation<get_group, Group>("GET /v1/tubes/{tube}/groups/{group}", {Needs::kRead, Reach::kTube},
                                "Shows a group that has jobs or settings.", kShowsTagged),
    operation<patch_group, Group>("PATCH /v1/tubes/{tube}/groups/{group}",
                                  {Needs::kAdmin, Reach::kTube},
                                  "Changes the settings of a group (RFC 7396).",
                                  {.appends = Appends::kYes,
                                   .audited_as = "group:patch",
                                   .problems = "503",
                                   .headers = "If-Match",
                                   .answer_headers = kTold}));

}  // namespace

std::span<const Operation> tube_operations() {
  return kTubeRows;
}

}  // namespace carillon::server
