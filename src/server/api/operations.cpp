// The rows (operations.h).
#include "server/api/operations.h"

#include <array>

#include "server/api/tubes.h"

namespace carillon::server {

namespace {

constexpr Operation kGetTube{.method = "GET",
                             .path = "/v1/tubes/{tube}",
                             .name = "getTube",
                             .tag = "tubes",
                             .summary = "Shows the counts of a tube, and what holds for it.",
                             .rights = {Needs::kRead, Reach::kTube},
                             .appends = Appends::kNo,
                             .problems = "400 404",
                             .request = &kShape<TubeName>,
                             .answer = &kShape<Tube>,
                             .run = run<TubeName, get_tube>};

constexpr Operation kPatchTube{
    .method = "PATCH",
    .path = "/v1/tubes/{tube}",
    .name = "patchTube",
    .tag = "tubes",
    .summary =
        "Changes the settings of a tube (RFC 7396), and makes the tube if it does not exist.",
    .rights = {Needs::kAdmin, Reach::kTube},
    .appends = Appends::kYes,
    .audited_as = "tube:patch",
    .problems = "400 415 422 503",
    .request = &kShape<PatchTube>,
    .answer = &kShape<Tube>,
    .run = run<PatchTube, patch_tube>};

constexpr Operation kPauseTube{.method = "POST",
                               .path = "/v1/tubes/{tube}:pause",
                               .name = "pauseTube",
                               .tag = "tubes",
                               .summary = "No job goes out for a while. A restart ends a pause.",
                               .rights = {Needs::kAdmin, Reach::kTube},
                               .appends = Appends::kNo,
                               .audited_as = "tube:pause",
                               .problems = "400 404 422",
                               .request = &kShape<PauseTube>,
                               .run = run<PauseTube, pause_tube>};

constexpr Operation kResumeTube{.method = "POST",
                                .path = "/v1/tubes/{tube}:resume",
                                .name = "resumeTube",
                                .tag = "tubes",
                                .summary = "Jobs go out again.",
                                .rights = {Needs::kAdmin, Reach::kTube},
                                .appends = Appends::kNo,
                                .audited_as = "tube:resume",
                                .problems = "400 404 422",
                                .request = &kShape<TubeName>,
                                .run = run<TubeName, resume_tube>};

constexpr Operation kKickTube{
    .method = "POST",
    .path = "/v1/tubes/{tube}:kick",
    .name = "kickTube",
    .tag = "tubes",
    .summary = "Makes buried jobs ready, or delayed jobs if no job is buried.",
    .rights = {Needs::kAdmin, Reach::kTube},
    .appends = Appends::kYes,
    .audited_as = "tube:kick",
    .problems = "400 404 422",
    .request = &kShape<KickTube>,
    .answer = &kShape<Kicked>,
    .run = run<KickTube, kick_tube>};

constexpr Operation kGetGroup{.method = "GET",
                              .path = "/v1/tubes/{tube}/groups/{group}",
                              .name = "getGroup",
                              .tag = "tubes",
                              .summary = "Shows a group that has jobs or settings.",
                              .rights = {Needs::kRead, Reach::kTube},
                              .appends = Appends::kNo,
                              .problems = "400 404",
                              .request = &kShape<GroupName>,
                              .answer = &kShape<Group>,
                              .run = run<GroupName, get_group>};

constexpr Operation kPatchGroup{.method = "PATCH",
                                .path = "/v1/tubes/{tube}/groups/{group}",
                                .name = "patchGroup",
                                .tag = "tubes",
                                .summary = "Sets what holds for a group (RFC 7396).",
                                .rights = {Needs::kAdmin, Reach::kTube},
                                .appends = Appends::kYes,
                                .audited_as = "group:patch",
                                .problems = "400 415 422 503",
                                .request = &kShape<PatchGroup>,
                                .run = run<PatchGroup, patch_group>};

constexpr std::array kOperations = {&kGetTube,  &kPatchTube, &kPauseTube, &kResumeTube,
                                    &kKickTube, &kGetGroup,  &kPatchGroup};

}  // namespace

std::span<const Operation* const> operations() {
  return kOperations;
}

}  // namespace carillon::server
