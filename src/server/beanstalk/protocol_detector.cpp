// ProtocolDetector: how an HTTP request line is recognized (protocol_detector.h).
#include "server/beanstalk/protocol_detector.h"

#include <algorithm>

namespace carillon::server::beanstalk {
namespace {

constexpr std::string_view kVersion = "HTTP/";

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

}  // namespace carillon::server::beanstalk
