// Finds the tubes that match, and lets connections watch them.

#include "cli/worker_tubes.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "cli/arguments.h"
#include "cli/output.h"
#include "server/beanstalk/command.h"

namespace carillon::cli {
namespace {

// Each refresh asks about this many tubes whether they are in use.
constexpr std::size_t kLooks = 32;

// Returns where the bracket expression that begins at `at` ends: behind its "]". A "]" that comes
// first, also behind a "!" or "^", is one of its characters. Returns npos if it does not end.
std::size_t end_of_brackets(std::string_view pattern, std::size_t at) {
  ++at;
  if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
  const std::size_t end = pattern.find(']', at + 1);
  return end == std::string_view::npos ? end : end + 1;
}

bool matches_a_tube_byte(const std::string& brackets) {
  for (int byte = 0x21; byte < 0x7f; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    if (is_tube_byte(text.front()) && ::fnmatch(brackets.c_str(), text.c_str(), 0) == 0)
      return true;
  }
  return false;
}

}  // namespace

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?[]") != std::string_view::npos;
}

// fnmatch() takes a "[" or "]" that stands alone for itself, and no name has one.
std::string why_nothing_matches(std::string_view pattern) {
  if (pattern.starts_with('-')) return "no name begins with \"-\"";
  std::size_t least = 0;  // bytes of a name that matches
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c != '*') ++least;
    if (c == ']') return "the \"]\" has no \"[\" before it";
    if (c == '[') {
      const std::size_t end = end_of_brackets(pattern, at);
      if (end == std::string_view::npos) return "the \"[\" has no \"]\" behind it";
      const std::string brackets(pattern.substr(at, end - at));
      if (!matches_a_tube_byte(brackets))
        return fmt::format("no name has a character of \"{}\"", brackets);
      at = end - 1;
    } else if (c != '*' && c != '?' && !is_tube_byte(c)) {
      return "a pattern has * ? [...], and what names of tubes have";
    }
  }
  using server::kMaxTubeName;
  if (least <= kMaxTubeName) return {};
  return fmt::format("it stands for {} bytes or more, and a name has up to {}", least,
                     kMaxTubeName);
}

WorkerTubes::WorkerTubes(const std::vector<std::string>& tubes) {
  for (const std::string& tube : tubes) {
    if (is_pattern(tube)) {
      patterns_.push_back(tube);
    } else {
      named_.insert(tube);
    }
  }
  if (tubes.empty()) named_.emplace(kDefaultTube);
}

bool WorkerTubes::matches(const std::string& tube) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&tube](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), tube.c_str(), 0) == 0;
  });
}

// A client that watches the tube keeps it in the list of tubes. So this asks for what it has.
bool WorkerTubes::is_in_use(Client& client, const std::string& tube) {
  const auto stats = client.stats_tube(tube);
  if (!stats) return false;
  std::uint64_t jobs = stats->number("current-using");
  for (const char* state : {"ready", "reserved", "delayed", "buried"})
    jobs += stats->number(fmt::format("current-jobs-{}", state));
  return jobs > 0;
}

void WorkerTubes::refresh(Client& client) {
  std::set<std::string> there;
  for (std::string& tube : client.tubes()) {
    if (matches(tube) && !named_.contains(tube)) there.insert(std::move(tube));
  }
  const auto is_gone = [&there](const std::string& tube) { return !there.contains(tube); };
  std::erase_if(watched_, is_gone);
  std::erase_if(left_, is_gone);
  // Each refresh checks some of the tubes that were there before, in turn.
  std::vector<std::string> looked_at;
  for (auto at = there.lower_bound(next_look_); at != there.end() && looked_at.size() < kLooks;
       ++at)
    if (watched_.contains(*at) || left_.contains(*at)) looked_at.push_back(*at);
  next_look_ = looked_at.size() < kLooks ? "" : looked_at.back() + '\0';
  for (const std::string& tube : looked_at) {
    const bool in_use = is_in_use(client, tube);
    (in_use ? left_ : watched_).erase(tube);
    if (!in_use) left_.insert(tube);
  }
  std::size_t too_many = 0;
  for (const std::string& tube : there) {
    if (left_.contains(tube) || watched_.contains(tube)) continue;
    if (watched_.size() < kMost) {
      watched_.insert(tube);
    } else {
      ++too_many;
    }
  }
  if (too_many > 0 && !std::exchange(told_, true))
    remark(fmt::format("carillon work: {} tubes match; the first {} are watched", kMost + too_many,
                       kMost));
}

std::set<std::string> WorkerTubes::now(Client& client) {
  const std::lock_guard lock(mutex_);
  if (!are_fixed() && (!has_asked_ || Clock::now() - asked_at_ >= kAge)) {
    refresh(client);
    has_asked_ = true;
    asked_at_ = Clock::now();
  }
  std::set<std::string> all = watched_;
  all.insert(named_.begin(), named_.end());
  return all;
}

TubeWatch::TubeWatch(WorkerTubes& tubes, Client& client) : tubes_(&tubes), watched_{"default"} {
  const std::set<std::string>& named = tubes.named();
  if (named.empty()) return;
  client.watch_only({named.begin(), named.end()});
  watched_ = named;
}

bool TubeWatch::follow(Client& client) {
  if (tubes_->are_fixed()) return true;
  const std::set<std::string> found = tubes_->now(client);
  // A connection always watches a tube. So the new ones come first. This one is
  // watched while no tube matches.
  const std::set<std::string> none{std::string(kDefaultTube)};
  const std::set<std::string>& wanted = found.empty() ? none : found;
  for (const std::string& tube : wanted) {
    if (watched_.contains(tube)) continue;
    try {
      client.watch(tube);
    } catch (const Refused&) {
      break;  // the server allows no more; it is asked again with the next call
    }
    watched_.insert(tube);
  }
  std::erase_if(watched_, [&](const std::string& tube) {
    if (wanted.contains(tube)) return false;
    client.ignore(tube);
    return true;
  });
  return !found.empty();
}

TubeWatch::HeldBack TubeWatch::held_back(Client& client) const try {
  HeldBack held;
  for (const std::string& tube : watched_) {
    const auto stats = client.stats_tube(tube);
    if (!stats || stats->number("current-jobs-ready") == 0) continue;
    held.for_a_time = stats->number("pause") != Client::kPauseForGood;
    if (held.for_a_time) return held;
    held.for_good = tube;
  }
  return held;
} catch (const Forbidden&) {
  return {};
}

Patience TubeWatch::patience(Patience asked) const {
  if (tubes_->are_fixed()) return asked;
  const std::chrono::milliseconds longest = WorkerTubes::kAge;
  return asked ? std::min(*asked, longest) : longest;
}

}  // namespace carillon::cli
