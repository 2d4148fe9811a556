// A reply with a large body, which comes in pieces while other things happen.
//
//   LargeReply reply;
//   reply.begin(job, body, reserved);        // the line "RESERVED 7 SIZE" has come, and no more
//   reply.take(bytes);                       // removes what belongs to it; throws Violation
//   if (reply.under_way()) ...               // more will come
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/job.h"
#include "simulator/history.h"

namespace carillon::simulator {

class LargeReply {
 public:
  // `holds`: the client has reserved the job.
  void begin(const queue::JobRecord& job, std::string body, bool holds) {
    job_ = job.id;
    body_ = job.body_id();
    whole_ = std::move(body) + "\r\n";
    at_ = 0;
    holds_ = holds;
  }
  bool under_way() const { return at_ < whole_.size(); }
  queue::JobId job() const { return job_; }
  // Names the body in the store.
  queue::JobId body() const { return body_; }
  bool holds() const { return holds_; }

  void take(std::string_view& bytes) {
    const std::size_t size = std::min(bytes.size(), whole_.size() - at_);
    if (whole_.compare(at_, size, bytes.substr(0, size)) != 0) {
      throw Violation("the body of job " + std::to_string(job_) +
                      " is sent with other bytes from " + std::to_string(at_) + " on");
    }
    bytes.remove_prefix(size);
    at_ += size;
    if (!under_way()) *this = {};
  }

 private:
  queue::JobId job_ = 0;
  queue::JobId body_ = 0;
  std::string whole_;  // the body and its end
  std::size_t at_ = 0;
  bool holds_ = false;
};

}  // namespace carillon::simulator
