// Which life and serial number a segment had, by its neighbours, newest.data and its records.

#include "queue/store/log_mender.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/directory.h"
#include "carillon/queue/store.h"
#include "queue/store/log_record.h"
#include "queue/store/log_segment.h"
#include "queue/store/newest_file.h"
#include "queue/store/stored_bytes.h"

namespace carillon::queue {

namespace fs = std::filesystem;

namespace {

struct Broken {
  std::string name;
  std::string why;
};

std::optional<LogRecordHead> first_record(std::string_view bytes, const LogUse& use) {
  LogRecord record;
  LogPlace place{.life = use.life, .serial = use.serial, .block = 1};
  for (; (place.block + 1) * kLogBlock <= bytes.size(); ++place.block) {
    const std::string_view from = bytes.substr(place.block * kLogBlock);
    if (find_log_record(from, place, record) == LogFound::kRecord) return record.head;
  }
  return std::nullopt;
}

// Which life and serial number a segment may have that stands beside a known one, or is the newest.
std::vector<LogUse> uses_to_try(const std::vector<LogUse>& known, const LogUse& newest) {
  std::vector<LogUse> uses{newest};
  for (const LogUse& one : known) {
    uses.push_back({.life = one.life, .serial = one.serial + 1});
    uses.push_back({.life = one.life, .serial = one.serial - 1});
    uses.push_back({.life = one.life_before, .serial = one.serial - 1});
  }
  return uses;
}

// Returns the use of the segment that has these bytes, if one of its records proves it.
std::optional<LogUse> use_of(std::string_view bytes, const std::vector<LogUse>& known,
                             const LogUse& newest) {
  for (LogUse use : uses_to_try(known, newest)) {
    const auto record = first_record(bytes, use);
    if (!record) continue;
    const auto before = std::find_if(known.begin(), known.end(), [&use](const LogUse& other) {
      return other.serial + 1 == use.serial;
    });
    if (before != known.end()) use.life_before = before->life;
    use.first = record->first;
    use.before = record->before;
    return use;
  }
  return std::nullopt;
}

LogUse newest_of(const base::Directory& directory, std::uint64_t identity) {
  try {
    const NewestFile::Segment newest = NewestFile::read(directory, identity);
    return {.life = newest.life, .serial = newest.serial};
  } catch (const StoreError&) {
    return {};  // a reader tells why
  }
}

}  // namespace

std::string mend_log(const std::string& path, const std::string& to, std::uint64_t identity,
                     std::vector<std::string>& damages) {
  const base::Directory directory(path);
  std::vector<std::string> names;
  directory.list(names);
  const LogUse newest = newest_of(directory, identity);
  std::vector<LogUse> known;
  std::vector<Broken> broken;
  for (const std::string& name : names) {
    if (!LogSegment::number_of(name)) continue;
    try {
      const auto segment = LogSegment::open(directory, name, LogWrites::kBuffered);
      if (segment.serial() > 0 && segment.identity() == identity) known.push_back(segment.use());
    } catch (const StoreError& why) {
      broken.push_back({name, why.what()});
    }
  }
  if (broken.empty()) return path;
  fs::create_directory(to);
  for (const std::string& name : names) {
    if (name.ends_with(".data")) fs::create_symlink(fs::absolute(path) / name, fs::path(to) / name);
  }
  // One that was mended may be the neighbour of another.
  for (bool again = true; again;) {
    again = false;
    for (auto at = broken.begin(); at != broken.end();) {
      std::string bytes = file_bytes(fs::path(path) / at->name);
      const auto use = use_of(bytes, known, newest);
      if (!use) {
        ++at;
        continue;
      }
      const auto blocks = static_cast<std::uint32_t>(bytes.size() / kLogBlock);
      const std::string header = LogSegment::header_of(identity, blocks, *use);
      bytes.replace(0, header.size(), header);
      fs::remove(fs::path(to) / at->name);
      write_file(fs::path(to) / at->name, bytes);
      damages.push_back(at->why);
      known.push_back(*use);
      at = broken.erase(at);
      again = true;
    }
  }
  return to;
}

}  // namespace carillon::queue
