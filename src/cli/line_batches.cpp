// Cuts standard input into batches of lines (line_batches.h).
#include "cli/line_batches.h"

#include <fmt/format.h>

#include <utility>

#include "cli/client.h"
#include "server/beanstalk/batch.h"
#include "server/beanstalk/command.h"

namespace carillon::cli {

using server::kMaxBatchBytes;

std::vector<std::string> LineBatches::next() {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  std::string line = std::exchange(kept_, {});
  ++number_;
  first_ = line.empty() ? line_ + 1 : line_;
  while (!line.empty() || take_line(line)) {
    const std::size_t more = line.size() + Client::kBatchLine;
    if (more > kMaxBatchBytes)
      throw Failure(fmt::format("line {} is too long: it has {} bytes", line_, line.size()));
    if (bytes + more > kMaxBatchBytes) {
      kept_ = std::move(line);
      return lines;
    }
    bytes += more;
    lines.push_back(std::exchange(line, {}));
    if (lines.size() == most_) return lines;
  }
  return lines;
}

// Leaves out empty lines.
bool LineBatches::take_line(std::string& line) {
  while (true) {
    const std::size_t end = rest_.find('\n', at_);
    if (end == std::string::npos && !ended_ && rest_.size() - at_ <= kMaxBatchBytes) {
      rest_.erase(0, std::exchange(at_, 0));
      const std::string more = read_();
      ended_ = more.empty();
      rest_ += more;
      continue;
    }
    if (end == std::string::npos && at_ == rest_.size()) return false;
    line = rest_.substr(at_, end == std::string::npos ? end : end - at_);
    at_ = end == std::string::npos ? rest_.size() : end + 1;
    ++line_;
    if (!line.empty()) return true;
  }
}

}  // namespace carillon::cli
