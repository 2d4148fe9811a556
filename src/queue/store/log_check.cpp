// Reads write-ahead logs block by block, fragment by fragment, to find where the unbroken sequence
// of records ends.

#include "queue/store/log_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/file_descriptor.h"
#include "base/file_io.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kBlockBytes = 32'768;
constexpr std::size_t kFragmentHeader = 7;
constexpr std::size_t kBatchHeader = 12;
constexpr char kLogData = 3;
constexpr char kMarkVersion = 1;
constexpr std::size_t kMarkBytes = 9;
constexpr std::size_t kHeadBytes =
    kBatchHeader + 2 + kMarkBytes;  // of a record: all that is looked at

enum FragmentType : std::uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::uint64_t little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    number |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[at + i])) << (8 * i);
  }
  return number;
}

bool blank(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

struct Fragment {
  std::uint8_t type = 0;
  std::string_view bytes;

  std::size_t size() const { return kFragmentHeader + bytes.size(); }
};

// The fragment at the front of `block`, if there is a sound one.
std::optional<Fragment> fragment_at(std::string_view block) {
  if (block.size() < kFragmentHeader) return std::nullopt;
  const std::uint64_t length = little(block, 4, 2);
  const auto type = static_cast<std::uint8_t>(block[6]);
  if (type < kWhole || type > kLast || kFragmentHeader + length > block.size()) return std::nullopt;
  // As stored, the checksum is rotated and offset, so that a checksum of data with checksums in it
  // stays a good one.
  const auto masked = static_cast<std::uint32_t>(little(block, 0, 4)) - 0xa282ead8U;
  const std::uint32_t expected = (masked >> 17) | (masked << 15);
  if (base::crc32c(0, block.substr(6, 1 + length)) != expected) return std::nullopt;
  return Fragment{type, block.substr(kFragmentHeader, length)};
}

// The front of a record.
struct Head {
  std::uint64_t sequence = 0;  // of its first entry
  std::uint64_t count = 0;
  std::uint64_t mark = 0;  // 0: none

  static std::optional<Head> of(std::string_view bytes) {
    if (bytes.size() < kBatchHeader) return std::nullopt;
    Head head{.sequence = little(bytes, 0, 8), .count = little(bytes, 8, 4)};
    if (bytes.size() >= kHeadBytes && bytes[12] == kLogData && bytes[13] == kMarkBytes &&
        bytes[14] == kMarkVersion) {
      head.mark = little(bytes, 15, 8);
    }
    return head;
  }
};

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!fd_) fail(errno);
  }

  // The block from `at` on: less than a whole one only at the end of the file.
  std::string_view read_block(std::uint64_t at) {
    std::size_t size = kBlockBytes;
    if (const int error = base::read_at(fd_.get(), block_, size, at); error != 0) fail(error);
    return {block_, size};
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw StoreError("cannot read the log " + path_ + ": " + std::strerror(error));
  }

  std::string path_;
  base::FileDescriptor fd_;
  char block_[kBlockBytes];
};

// What is known of the logs read so far.
class Checker {
 public:
  LogCheck check(const std::vector<std::string>& paths) {
    LogCheck result;
    for (const std::string& path : paths) {
      result.logs.push_back(check_log(path));
      first_log_ = false;
    }
    const auto cut =
        std::find_if(result.logs.begin(), result.logs.end(), [this](const CheckedLog& log) {
          return log.left_out > 0 || (missing_ && log.path == broken_log_ && !log.complete);
        });
    if (cut != result.logs.end()) cut->cut = true;
    if (missing_ && highest_mark_ >= *missing_) {
      result.damage = "the log " + broken_log_ + " is damaged at byte " +
                      std::to_string(broken_at_) +
                      ": records from there on had been synced and cannot be read";
    }
    return result;
  }

 private:
  CheckedLog check_log(const std::string& path) {
    log_ = CheckedLog{path};
    whole_ = true;
    open_ = false;
    File file(path);
    std::uint64_t end = 0;
    std::uint64_t size = 0;
    for (std::uint64_t at = 0;; at += kBlockBytes) {
      const std::string_view block = file.read_block(at);
      check_block(block, at);
      const std::size_t last = block.find_last_not_of('\0');
      if (last != std::string_view::npos) end = at + last + 1;
      size = at + block.size();
      if (block.size() < kBlockBytes) break;
    }
    log_.left_out = end > log_.readable ? end - log_.readable : 0;
    log_.complete = size == log_.readable;
    return std::move(log_);
  }

  void check_block(std::string_view block, std::uint64_t at) {
    std::size_t from = 0;
    while (from < block.size()) {
      const std::string_view rest = block.substr(from);
      if (const auto fragment = fragment_at(rest)) {
        from += fragment->size();
        take(*fragment, at + from);
        continue;
      }
      if (rest.size() < kFragmentHeader && block.size() == kBlockBytes)
        return;  // no room for another fragment
      break_off();
      if (blank(rest)) return;
      ++from;  // after damage, the next fragment may be anywhere
    }
  }

  void break_off() {
    whole_ = false;
    open_ = false;
  }

  void take(const Fragment& fragment, std::uint64_t end) {
    const bool begins = fragment.type == kWhole || fragment.type == kFirst;
    const bool ends = fragment.type == kWhole || fragment.type == kLast;
    if (begins == open_)
      break_off();  // a first within a record, or a middle or a last outside of one
    if (!begins && !open_) return;
    if (begins) head_.clear();
    head_.append(fragment.bytes.substr(0, kHeadBytes - std::min(kHeadBytes, head_.size())));
    open_ = !ends;
    if (ends) take_record(end);
  }

  void take_record(std::uint64_t end) {
    const auto head = Head::of(head_);
    if (!head) return break_off();
    const bool follows = next_ ? head->sequence == *next_ : first_log_;
    if (whole_ && follows) {
      next_ = head->sequence + head->count;
      log_.readable = end;
      broken_log_ = log_.path;  // here, if the next record is not found
      broken_at_ = end;
      return;
    }
    whole_ = false;
    if (!next_) {  // the very first records are missing, this one's predecessor among them
      next_ = head->sequence - 1;
      broken_log_ = log_.path;
    }
    missing_ = next_;
    if (head->sequence > head->mark) highest_mark_ = std::max(highest_mark_, head->mark);
  }

  std::optional<std::uint64_t>
      next_;  // the sequence number that continues what may be replayed; none: not known yet
  std::optional<std::uint64_t> missing_;  // the same, once records beyond it have been seen
  std::uint64_t highest_mark_ = 0;        // of those records
  std::string broken_log_;
  std::uint64_t broken_at_ = 0;

  // Of the log being read:
  bool first_log_ = true;
  CheckedLog log_;
  bool whole_ = true;  // each record so far may be replayed
  bool open_ = false;  // within a record
  std::string head_;   // the front of that record
};

}  // namespace

Bytes<9> durability_mark(std::uint64_t durable) {
  Bytes<9> mark;
  mark[0] = kMarkVersion;
  for (std::size_t i = 0; i < 8; ++i) mark[i + 1] = static_cast<char>(durable >> (8 * i));
  return mark;
}

LogCheck check_logs(const std::vector<std::string>& paths) {
  return Checker().check(paths);
}

}  // namespace carillon::queue
