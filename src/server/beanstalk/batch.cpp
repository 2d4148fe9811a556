// Reads the data of the commands for many jobs (batch.h).
#include "server/beanstalk/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "server/api/job.h"
#include "server/api/names.h"
#include "server/beanstalk/command.h"
#include "server/beanstalk/job_options.h"
#include "server/text/whole_number.h"

namespace carillon::server::beanstalk {
namespace {

// Takes the jobs from the front of the data, one by one.
class Reader {
 public:
  Reader(std::string_view data, std::string_view defaults, std::uint32_t max_job_size)
      : rest_(data),
        defaults_(defaults),
        max_job_size_(std::min<std::size_t>(max_job_size, queue::kBodyPiece)) {}

  bool done() const { return rest_.empty(); }

  // Returns what is wrong with the next job, or nothing: then `job` is set.
  std::string take(queue::NewJob& job) {
    const std::size_t length = rest_.substr(0, kMaxLongLine).find(kEnd);
    if (length == std::string_view::npos) return "BAD_FORMAT";
    const std::string_view line = rest_.substr(0, length);
    const std::string_view size = line.substr(0, line.find(' '));
    const auto bytes = whole_number<std::uint64_t>(size);
    if (!bytes) return "BAD_FORMAT";
    rest_.remove_prefix(length + kEnd.size());
    if (*bytes > max_job_size_) return "JOB_TOO_BIG";
    if (rest_.size() < *bytes || !rest_.substr(*bytes).starts_with(kEnd)) return "EXPECTED_CRLF";
    job.body = rest_.substr(0, *bytes);
    rest_.remove_prefix(*bytes + kEnd.size());
    return read(line.substr(size.size()), job.order);
  }

 private:
  std::string read(std::string_view text, queue::PutOrder& order) {
    try {
      JobOptions options = parse_job_options(text, OptionsOf::kPut);
      set_defaults(defaults_, options);
      order = put_order(options);
    } catch (const std::invalid_argument& error) {
      return std::string("BAD_OPTION ") + error.what();
    }
    if (order.key.empty() || keys_.insert(order.key).second) return {};
    return "BAD_OPTION key: another job of the batch has it";
  }

  std::string_view rest_;
  std::string_view defaults_;
  std::size_t max_job_size_;
  std::unordered_set<std::string_view> keys_;
};

}  // namespace

Batch parse_batch(std::string_view data, std::string_view defaults, std::uint32_t max_job_size) {
  Batch batch;
  for (Reader reader(data, defaults, max_job_size); !reader.done();) {
    queue::NewJob job;
    batch.why = batch.jobs.size() < kMaxBatch ? reader.take(job) : "TOO_MANY";
    if (!batch.why.empty()) {
      batch.wrong = batch.jobs.size() + 1;
      return batch;
    }
    batch.jobs.push_back(job);
  }
  return batch;
}

std::optional<std::vector<queue::JobId>> parse_ids(std::string_view data) {
  std::vector<queue::JobId> ids;
  while (true) {
    data.remove_prefix(std::min(data.find_first_not_of(' '), data.size()));
    if (data.empty()) return ids;
    const std::string_view word = data.substr(0, data.find(' '));
    const auto id = whole_number<queue::JobId>(word);
    if (!id || ids.size() == kMaxBatch) return std::nullopt;
    ids.push_back(*id);
    data.remove_prefix(word.size());
  }
}

std::string put_answer(const queue::PutOutcome& outcome) {
  using Result = queue::PutOutcome::Result;
  const std::string id = std::to_string(outcome.id);
  switch (outcome.result) {
    case Result::kInserted:
      return "INSERTED " + id;
    case Result::kReplaced:
      return "REPLACED " + id;
    case Result::kExists:
      return fmt::format("EXISTS {} {}", id, name_of(outcome.owner));
    case Result::kReserved:
      return "IS_RESERVED " + id;
    case Result::kDraining:
      return "DRAINING";
    case Result::kTooFast:
      return "TOO_FAST " + std::to_string(outcome.wait);
    case Result::kTooMany:
      return "TOO_MANY";
    case Result::kTooFar:
      break;
  }
  return "OUT_OF_RANGE";
}

}  // namespace carillon::server::beanstalk
