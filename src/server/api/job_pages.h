// The jobs of a tube in pages: what is asked for, and what is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api/filters.h"
#include "server/api/job.h"

namespace carillon::server {

inline constexpr std::string_view kBodiesHelp =
    "With bodies of up to 64 KiB. A page ends when it has 128 KiB of them.";
struct ListJobs : Filter {
  std::string tube;
  bool bodies = false;
  std::uint32_t page_size = kUsuallyListed;
  std::optional<queue::JobCursor> page_token;
};
template <>
inline constexpr auto kFields<ListJobs> = fields(field<&ListJobs::tube>("The tube.", kTubeRule),
                                                 kFilterFields<ListJobs>,
                                                 field<&ListJobs::bodies>(kBodiesHelp),
                                                 field<&ListJobs::page_size>(kPageSizeHelp,
                                                                             kPageSizeRule),
                                                 field<&ListJobs::page_token>(kPageTokenHelp));

struct JobPage {
  std::vector<Job> jobs;
  std::optional<bool> incomplete;
  std::optional<queue::JobCursor> next_page_token;
};
template <>
inline constexpr auto kFields<JobPage> =
    fields(field<&JobPage::jobs>("By due time, without their attempts."),
           field<&JobPage::incomplete>(kIncompleteHelp),
           field<&JobPage::next_page_token>(kNextPageHelp, kNextPageRule));

}  // namespace carillon::server
