// Finds out which life and serial number a segment had, from its neighbours, newest.data and its
// records.

#include "queue/store/log/log_mender.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/directory.h"
#include "carillon/queue/store.h"
#include "queue/store/log/log_record.h"
#include "queue/store/log/log_segment.h"
#include "queue/store/log/newest_file.h"
#include "queue/store/state/stored_bytes.h"

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

// Returns the lives and serial numbers that a segment may have if it stands beside a known one, or
// is the newest. A file is used again and again, and keeps records of earlier uses: the latest use
// comes first.
std::vector<LogUse> uses_to_try(const std::vector<LogUse>& known, const LogUse& newest) {
  std::vector<LogUse> uses{newest};
  for (const LogUse& one : known) {
    uses.push_back({.life = one.life, .serial = one.serial + 1});
    uses.push_back({.life = one.life, .serial = one.serial - 1});
    uses.push_back({.life = one.life_before, .serial = one.serial - 1});
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const LogUse& a, const LogUse& b) { return a.serial > b.serial; });
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
    return {};  // the reader reports why
  }
}

// Returns nothing if the file cannot be read: the reader reports why.
std::optional<std::string> readable(const fs::path& path) {
  try {
    return file_bytes(path);
  } catch (const StoreError&) {
    return std::nullopt;
  }
}

void link_files(const std::string& path, const std::vector<std::string>& names,
                const std::string& to) {
  std::error_code error;
  fs::create_directory(to, error);
  const fs::path from = fs::absolute(path, error);
  for (const std::string& name : names) {
    if (!error && name.ends_with(".data"))
      fs::create_symlink(from / name, fs::path(to) / name, error);
  }
  if (error) throw StoreError("cannot make links in " + to + ": " + error.message());
}

void replace_link(const fs::path& link, const std::string& bytes) {
  std::error_code error;
  fs::remove(link, error);
  if (error) throw StoreError("cannot remove " + link.string() + ": " + error.message());
  write_file(link, bytes);
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
  link_files(path, names, to);
  // A segment that was mended may be the neighbour of another.
  for (bool again = true; again;) {
    again = false;
    for (auto at = broken.begin(); at != broken.end();) {
      auto bytes = readable(fs::path(path) / at->name);
      const auto use = bytes ? use_of(*bytes, known, newest) : std::nullopt;
      if (!use) {
        ++at;
        continue;
      }
      const auto blocks = static_cast<std::uint32_t>(bytes->size() / kLogBlock);
      const std::string header = LogSegment::header_of(identity, blocks, *use);
      bytes->replace(0, header.size(), header);
      replace_link(fs::path(to) / at->name, *bytes);
      damages.push_back(at->why);
      known.push_back(*use);
      at = broken.erase(at);
      again = true;
    }
  }
  return to;
}

}  // namespace carillon::queue
