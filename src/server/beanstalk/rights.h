// What each verb needs of the client's token, and which tubes it touches (caller.h).
//
//   rights_of(Verb::kPut);      // {Needs::kPut, Reach::kTubeInUse}
//
// A verb that is not listed does not compile. Thread safety: pure.
#pragma once

#include "server/beanstalk/command.h"
#include "server/caller.h"

namespace carillon::server::beanstalk {

constexpr Rights rights_of(Verb verb) {
  switch (verb) {
    case Verb::kUnknown:
    case Verb::kAuth:
    case Verb::kQuit:
      return {Needs::kNothing, Reach::kNoTube};
    case Verb::kPut:
    case Verb::kPutMs:
    case Verb::kPutAt:
    case Verb::kPutJob:
    case Verb::kPutJobs:
      return {Needs::kPut, Reach::kTubeInUse};
    case Verb::kPeek:
    case Verb::kStatsJob:
    case Verb::kPeekJob:
    case Verb::kShowJob:
    case Verb::kStoryJob:
      return {Needs::kRead, Reach::kJob};
    case Verb::kPeekReady:
    case Verb::kPeekDelayed:
    case Verb::kPeekBuried:
      return {Needs::kRead, Reach::kTubeInUse};
    case Verb::kReserve:
    case Verb::kReserveWithTimeout:
    case Verb::kReserveWithTimeoutMs:
    case Verb::kReserveJobs:
      return {Needs::kWork, Reach::kWatched};
    case Verb::kReserveJob:
    case Verb::kDelete:
    case Verb::kRelease:
    case Verb::kReleaseMs:
    case Verb::kBury:
    case Verb::kTouch:
    case Verb::kFailJob:
    case Verb::kTouchJob:
      return {Needs::kWork, Reach::kJob};
    case Verb::kKick:
      return {Needs::kAdmin, Reach::kTubeInUse};
    case Verb::kKickJob:
    case Verb::kBuryJob:
      return {Needs::kAdmin, Reach::kJob};
    case Verb::kStats:
      return {Needs::kRead, Reach::kNoTube};
    case Verb::kStatsTube:
    case Verb::kStatsGroup:
    case Verb::kListGroups:
    case Verb::kListJobs:
    case Verb::kDueCounts:
      return {Needs::kRead, Reach::kTube};
    case Verb::kUse:
      return {Needs::kToken, Reach::kTube};
    case Verb::kWatch:
      return {Needs::kWork, Reach::kTube};
    case Verb::kIgnore:
    case Verb::kListTubeUsed:
    case Verb::kListTubesWatched:
    case Verb::kNameClient:
      return {Needs::kToken, Reach::kNoTube};
    case Verb::kListTubes:
      return {Needs::kRead, Reach::kChecked};
    case Verb::kPauseTube:
    case Verb::kSetTube:
    case Verb::kCancelJobs:
    case Verb::kRetryJobs:
    case Verb::kMoveJobs:
    case Verb::kSpreadJobs:
      return {Needs::kAdmin, Reach::kTube};
    case Verb::kCheckpoint:
      return {Needs::kAdmin, Reach::kAllTubes};
    case Verb::kPatchJob:
    case Verb::kCancelJob:
      return {Needs::kPut, Reach::kJob};
    case Verb::kDeleteJobs:
    case Verb::kReleaseJobs:
      return {Needs::kWork, Reach::kChecked};
    case Verb::kSetSchedule:
      return {Needs::kPut, Reach::kChecked};
    case Verb::kDeleteSchedule:
    case Verb::kPauseSchedule:
    case Verb::kResumeSchedule:
    case Verb::kTriggerSchedule:
      return {Needs::kPut, Reach::kSchedule};
    case Verb::kStatsSchedule:
    case Verb::kShowSchedule:
      return {Needs::kRead, Reach::kSchedule};
    case Verb::kListSchedules:
      return {Needs::kRead, Reach::kAllTubes};
  }
  return {Needs::kAdmin, Reach::kAllTubes};
}

}  // namespace carillon::server::beanstalk
