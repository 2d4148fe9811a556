// A job as the API shows it, both ways: what is asked of a new one, and what there is of one.
//
//   FieldFaults faults;
//   JobFields job;
//   read_job(object, "", faults, job);        // {"delay":"30s","key":"order-7","body":"hello"}
//   faults.throw_if_any();
//   engine.put(client, now, job.order, job.body);
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "server/api/fields.h"
#include "server/http/request_reader.h"
#include "server/text/duration.h"

namespace carillon::server::http {

// A new job. Its order points into `key`, `group` and `attributes`.
struct JobFields {
  queue::PutOrder order;
  std::string key;
  std::string group;
  std::string attributes;
  std::string body;

  JobFields() = default;
  JobFields(const JobFields&) = delete;
  JobFields& operator=(const JobFields&) = delete;
};

// Reads what set_text() writes: the field, or the one with _base64 behind its name. None if neither
// is there. The names must outlive `fields`.
std::optional<std::string> read_text(Fields& fields, std::string_view name,
                                     std::string_view base64);
std::optional<queue::Millis> read_ttr(Fields& fields);
// {"max_attempts":5,"backoff":{"type":"exponential","initial":"1s","max":"1h","jitter":10}}. What
// is not named stays as it is in the policy, and null stands for what holds without the field.
void read_retry(const boost::json::object& object, const std::string& at, FieldFaults& faults,
                queue::RetryPolicy& policy);
// Reads the field `retry` of a job or a schedule: its own policy, also if all of it is 0.
void read_own_retry(Fields& fields, FieldFaults& faults, queue::RetryPolicy& policy);
boost::json::object json_of(const queue::RetryPolicy& policy);
std::optional<queue::Millis> read_expires_in(Fields& fields);
// What is kept with a job, as one word (server/api/attributes.h); empty if there is nothing.
std::string read_attributes(Fields& fields);
// Adds them to what is shown of a job.
void show_attributes(const std::string& attributes, boost::json::object& job);

// Sets the field; a text that is not UTF-8 comes as Base64, under the name with _base64 behind it.
void set_text(boost::json::object& object, std::string_view name, std::string_view text);

// Says that the text is no key, or group, as put-job has it.
std::string key_fault(std::string_view what, std::string_view text);
// Throws Problem if the text is no key, as put-job has it.
void require_key(std::string_view text);

// Reads the description of a job: all fields that a client may set. Faults are noted.
void read_job(const boost::json::object& object, const std::string& at, FieldFaults& faults,
              JobFields& job);

// Adds the trace that the request's headers name, as W3C Trace Context has it, to a description
// that names none.
void add_trace(const Request& request, boost::json::object& object);

// Reads a job whose body is that of the request, and whose fields are headers: Carillon-Delay,
// Carillon-Due, Carillon-Group, Carillon-Key, Carillon-On-Conflict, Carillon-Priority,
// Carillon-Ttr. Throws Problem.
void read_plain_job(const Request& request, JobFields& job);

// Returns true if the request's body is the description of a job, and not a plain body.
bool describes_job(const Request& request);

// A change of a job (RFC 7396). Its patch points into `body`. `attributes` are not in it yet: they
// change those that the job has (merged_attributes()).
struct PatchFields {
  queue::Patch patch;
  std::string body;
  boost::json::object attributes;
};
void read_patch(const boost::json::object& object, FieldFaults& faults, PatchFields& patch);

// Returns the job. `body` is none if it has more than queue::kBodyPiece bytes.
boost::json::object json_of(const queue::JobStats& stats, const std::vector<queue::Attempt>& story,
                            std::optional<std::string_view> body);

// Returns the job's entity tag, in quotes. While it is the same, json_of() is, too: nobody has
// changed the job, and it was not reserved, buried, moved or asked to stop.
std::string etag_of(const queue::JobStats& stats);

}  // namespace carillon::server::http
