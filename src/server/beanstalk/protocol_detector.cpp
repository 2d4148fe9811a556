// ProtocolDetector: how an HTTP request line is recognized, and how a session rejects its client
// (protocol_detector.h).
#include "server/beanstalk/protocol_detector.h"

#include <algorithm>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::string_view kVersion = "HTTP/";

// The whole answer to an HTTP request. A browser shows it to no page of another site, because it
// grants no access; a person who has mistaken the port can read it. Without an answer a browser
// might send the request again.
constexpr std::string_view kNotHttp =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 55\r\n"
    "Connection: close\r\n"
    "\r\n"
    "This port speaks the beanstalk protocol, and not HTTP.\n";

}  // namespace

bool ProtocolDetector::Words::read(std::string_view bytes) {
  for (const char byte : bytes) {
    if (matched_ == kVersion.size()) return true;
    read(byte);
  }
  return matched_ == kVersion.size();
}

void ProtocolDetector::Words::read(char byte) {
  if (byte == ' ') {
    in_word_ = false;
    matched_ = 0;
  } else if (!in_word_) {
    in_word_ = true;
    begun_ = std::min(begun_ + 1, 3u);
    matched_ = begun_ == 3 && byte == kVersion.front() ? 1 : 0;
  } else if (matched_ > 0) {
    matched_ = byte == kVersion[matched_] ? matched_ + 1 : 0;
  }
}

void Session::refuse_http() {
  replies_.add(0, kNotHttp);
  turn_away(RejectReason::kHttp);
}

void Session::turn_away(RejectReason reason) {
  rejection_ = reason;
  ++service_.counters().closed_foreign;
  close();
}

}  // namespace carillon::server::beanstalk
