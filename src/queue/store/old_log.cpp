// Goes from fragment to fragment.

#include "queue/store/old_log.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 32 << 10;
constexpr std::size_t kHead = 7;
// Whole, or the first, a middle or the last fragment of a record. 0: zeros.
constexpr unsigned kLastType = 4;

// Takes the fragments of a block away. What stays are zeros, where the log has its end or may have
// one, or bytes that RocksDB refuses. Returns false at a type that Carillon did not write.
bool take_fragments(std::string_view& block) {
  while (block.size() >= kHead) {
    std::uint16_t size = 0;
    std::memcpy(&size, block.data() + 4, sizeof size);
    const auto type = static_cast<unsigned char>(block[6]);
    if (type > kLastType) return false;
    if ((type == 0 && size == 0) || block.size() - kHead < size) break;
    block.remove_prefix(kHead + size);
  }
  return true;
}

OldLog look_at(const std::string& path) {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(kBlock, '\0');
  bool ended = false;
  for (std::uint64_t at = 0;; at += kBlock) {
    std::size_t size = kBlock;
    const int error = file ? base::read_at(file.get(), bytes.data(), size, at) : errno;
    if (error != 0)
      throw StoreError("the log " + path + " cannot be read: " + std::strerror(error));
    if (size == 0) return at == 0 ? OldLog::kNone : OldLog::kSound;
    std::string_view block(bytes.data(), size);
    if (!ended && !take_fragments(block)) return OldLog::kUnsound;
    const bool zeros = block.find_first_not_of('\0') == std::string_view::npos;
    ended = ended || block.size() >= kHead;
    if (ended && !zeros) return OldLog::kUnsound;
  }
}

}  // namespace

OldLog look_at_old_log(const std::string& directory) {
  OldLog worst = OldLog::kNone;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".log") continue;
    const OldLog seen = look_at(at->path().string());
    if (seen == OldLog::kUnsound) return seen;
    if (seen == OldLog::kSound) worst = seen;
  }
  if (error) throw StoreError("the directory " + directory + " cannot be read: " + error.message());
  return worst;
}

}  // namespace carillon::queue
