// What may happen while a large body comes in or goes out in pieces (model.h).

#include <algorithm>
#include <string>

#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

// The job has its id from now on, and comes when the body is whole.
void Model::begin_body(ClientNumber number, JobId id) {
  Client& client = clients_.at(number);
  const std::string what = "the large body of job " + std::to_string(id) + " is begun, and ";
  if (id <= last_given_ || id <= last_told_) throw Violation(what + "this id was given before");
  if (client.body != 0) throw Violation(what + "the client has another one");
  last_given_ = client.body = id;
}

void Model::expect_no_remains() const {
  for (const auto& [id, body] : history_.state().unfinished) {
    const auto is_of = [job = id](const auto& client) { return client.second.body == job; };
    if (std::none_of(clients_.begin(), clients_.end(), is_of))
      throw Violation("of job " + std::to_string(id) + " a part of its body is left");
  }
}

// With each piece the ttr begins anew.
void Model::judge_more_of_body(ClientNumber number, JobId id, const Times& times) {
  Job* const job = find(id);
  if (job == nullptr || held_by(*job, number, times.last) == Is::kNo) {
    throw Violation("client " + std::to_string(number) + " gets more of the body of job " +
                    std::to_string(id) + ", which it does not hold");
  }
  give_time(*job, times.first, times.last);
}

void Model::judge_cut(ClientNumber number, JobId id, JobId body, bool holds, const Times& times,
                      const Excuses& excuses) {
  turns_.forget_all();  // the job comes back
  const Job* const job = find(id);
  const bool is_over = job == nullptr || job->record.body_id() != body ||
                       (holds && held_by(*job, number, times.last) != Is::kYes);
  if (is_over || excuses.fails) return;
  throw Violation("client " + std::to_string(number) + " does not get the rest of " +
                  text_of(id, *job, times.last));
}

bool Model::may_put_large_body() const {
  constexpr std::ptrdiff_t kFew = 4;
  const auto is_large = [](const auto& job) {
    return job.second.record.body_bytes > queue::kBodyPiece;
  };
  return std::count_if(jobs_.begin(), jobs_.end(), is_large) < kFew;
}

}  // namespace carillon::simulator
