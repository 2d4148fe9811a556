// A pushed job as an event of CloudEvents 1.0, in the two modes of its HTTP binding.
//
//   add_event_headers(headers, event);         // binary mode: ce-id: job_17
//   body = in_json(event);                     // structured mode: {"specversion":"1.0",...
//
// Sources: https://github.com/cloudevents/spec, versions 1.0.2 of the HTTP protocol binding and of
// the JSON event format. Thread safety: pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/job.h"

namespace carillon::server::push {

// What is pushed: a job, or a trial of the endpoint.
struct Event {
  std::string id;
  std::string type;
  std::string tube;
  std::string key;
  queue::UtcMs time = 0;
  std::string content_type;
  std::string body;
};

// Adds the headers of the binary mode, beside the content type.
void add_event_headers(std::vector<std::pair<std::string, std::string>>& headers,
                       const Event& event);

// Returns the event as JSON. A JSON body stands in it as it is, a text as a string. Any other body,
// or one that is not what its type says, stands in Base64.
std::string in_json(const Event& event);

}  // namespace carillon::server::push
