// Problem: its document (problem.h).
#include "server/api/problem.h"

#include <boost/json.hpp>

#include "server/text/json_text.h"

namespace carillon::server {

namespace {

// The page of the server that describes each problem (docs/decisions/0100).
constexpr std::string_view kPages = "/docs#";

}  // namespace

std::string Problem::json(std::string_view path) const {
  boost::json::object document;
  document["type"] = std::string(kPages).append(kind_.slug);
  document["title"] = kind_.title;
  document["status"] = kind_.status;
  document["detail"] = to_utf8(detail_);  // it may name what the client has sent
  if (!path.empty()) document["instance"] = path;
  if (!state_.empty()) document["state"] = state_;
  if (!faults_.empty()) {
    boost::json::array errors;
    for (const FieldFault& fault : faults_)
      errors.push_back({{"pointer", to_utf8(fault.pointer)}, {"detail", to_utf8(fault.detail)}});
    document["errors"] = std::move(errors);
  }
  return boost::json::serialize(document);
}

}  // namespace carillon::server
