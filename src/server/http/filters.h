// Which jobs of a tube a request means: by its query, or by the object "filter" of its body.
//
//   GET /v1/tubes/mail/jobs?state=buried,dead&due_before=2030-01-01T00:00:00Z&page_size=50
//   {"filter":{"tube":"mail","key_prefix":"order-"},"dry_run":true}
//
// The values are those of the options of list-jobs (server/api/list_options.h), and are
// checked there.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/api/fields.h"
#include "server/api/list_options.h"
#include "server/http/request_reader.h"

namespace carillon::server::http {

// Reads the query of a list of jobs. Throws Problem if a value is wrong. REQUIRES: check_input()
// (routes.h) has let its names pass.
beanstalk::ListOptions read_job_query(const Request& request);

// What a request wants of a list in pages, whatever is listed.
struct Page {
  static constexpr std::size_t kMost = 1'000;
  std::size_t size = 100;
  std::string after;  // the token: what the page before ended with
};
Page read_page(const Request& request);

// Reads the fields of a filter, without `tube`. `of` is the change that is asked for; `to` its
// target, if it is a move.
beanstalk::ListOptions read_filter(Fields& fields, beanstalk::ListOptionsOf of,
                                   const std::string& to = {});

}  // namespace carillon::server::http
