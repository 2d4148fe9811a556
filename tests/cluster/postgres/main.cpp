// A shared log in PostgreSQL, driven line by line (postgres_log_test.py).
//
//   postgres_log URL
//
// Each line of standard input is a command. Each answer is one line: "ok …", or how it failed.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/start_error.h"
#include "carillon/queue/store.h"
#include "cluster/entry_codec.h"
#include "cluster/postgres/postgres_log.h"

namespace carillon::cluster {
namespace {

using postgres::PostgresLog;

// A node without a state: what it has read or written last, and the chains on the way.
class Driver {
 public:
  explicit Driver(const std::string& url) : log_(url) { chains_[0] = {}; }

  // Returns the answer, without the line's end.
  std::string run(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    return commands_.at(verb)(words);
  }

 private:
  std::string check(std::istream& words) {
    std::set<std::string> allowed;
    for (std::string word; words >> word;) allowed.insert(word);
    log_.check(allowed);
    return "ok";
  }

  // claim EPOCH OWNER
  std::string claim(std::istream& words) {
    words >> epoch_ >> owner_.low;
    Entry entry = entry_of(Entry::Kind::kClaim);
    return append(entry, "");
  }

  // window BYTES: one change with this many bytes.
  std::string window(std::istream& words) {
    std::size_t size = 0;
    words >> size;
    std::string changes;
    add_change(changes, std::string(size, 'x'));
    return append(entry_of(Entry::Kind::kWindow), changes);
  }

  // Follows the log to its end, and compares every chain with one of its own.
  std::string follow(std::istream&) {
    std::size_t count = 0;
    while (true) {
      const auto entries = log_.read(position_);
      if (entries.empty()) break;
      for (const SharedLog::Stored& one : entries) {
        if (one.position != position_ + 1) return "gap before " + std::to_string(one.position);
        chain_ = chain_after(chain_, one.bytes);
        if (chain_ != one.chain) return "another chain at " + std::to_string(one.position);
        const auto entry = decode_entry(one.bytes);
        if (!entry) return "no entry at " + std::to_string(one.position);
        if (entry->entry.kind == Entry::Kind::kWindow) next_ = entry->entry.end;
        epoch_ = entry->entry.epoch;
        position_ = one.position;
        chains_[position_] = chain_;
        ++count;
      }
    }
    return "ok " + std::to_string(count) + " to " + std::to_string(position_);
  }

  // read AFTER: one read.
  std::string read(std::istream& words) {
    Position after = 0;
    words >> after;
    std::size_t bytes = 0;
    const auto entries = log_.read(after);
    for (const SharedLog::Stored& one : entries) bytes += one.bytes.size();
    std::ostringstream answer;
    answer << "ok " << entries.size() << " entries " << bytes << " bytes";
    if (!entries.empty())
      answer << " from " << entries.front().position << " to " << entries.back().position;
    return answer.str();
  }

  // place POSITION [other]: with the chain that was there, or another one.
  std::string place(std::istream& words) {
    Mark mark;
    std::string other;
    words >> mark.position >> other;
    mark.chain = chains_[mark.position];
    if (!other.empty()) mark.chain[0] ^= 1;
    switch (log_.place_of(mark)) {
      case Place::kThere:
        return "ok there";
      case Place::kAnother:
        return "ok another";
      case Place::kEndsBefore:
        return "ok ends before";
      case Place::kBeginsAfter:
        return "ok begins after";
    }
    return "none";
  }

  std::string report(std::istream& words) {
    SharedLog::Node node;
    words >> node.id >> node.address >> node.read >> node.flushed;
    node.owner = owner_;
    log_.report(node);
    return "ok";
  }

  std::string nodes(std::istream&) {
    std::ostringstream answer;
    answer << "ok";
    for (const SharedLog::Node& node : log_.nodes())
      answer << " " << node.id << "," << node.owner.low << "," << node.address << "," << node.read
             << "," << node.flushed << "," << (node.silent_for.count() < 5'000 ? "now" : "before");
    return answer.str();
  }

  std::string trim(std::istream& words) {
    Position before = 0;
    words >> before;
    log_.trim(before);
    return "ok";
  }

  std::string id(std::istream&) {
    const LogId id = log_.id();
    return "ok " + std::to_string(id.high) + " " + std::to_string(id.low);
  }

  // measure COUNT BYTES: how long each of COUNT windows takes.
  std::string measure(std::istream& words) {
    std::size_t count = 0;
    std::size_t size = 0;
    words >> count >> size;
    std::vector<double> times;
    for (std::size_t i = 0; i < count; ++i) {
      std::istringstream argument(std::to_string(size));
      const auto began = std::chrono::steady_clock::now();
      if (const std::string answer = window(argument); !answer.starts_with("ok")) return answer;
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
              .count());
    }
    std::sort(times.begin(), times.end());
    std::ostringstream answer;
    answer << "ok " << times[times.size() / 2] << " " << times[times.size() * 99 / 100];
    return answer.str();
  }

  Entry entry_of(Entry::Kind kind) const {
    Entry entry;
    entry.kind = kind;
    entry.epoch = epoch_;
    entry.owner = owner_;
    entry.first = next_;
    entry.end = kind == Entry::Kind::kClaim ? next_ : next_ + 1;
    entry.before = chain_;
    return entry;
  }

  std::string append(Entry entry, std::string_view changes) {
    const std::string bytes = encode_entry(entry, changes);
    entry.after = chain_after(entry.before, bytes);
    const SharedLog::Answer answer = log_.append(entry, bytes);
    if (!answer.failure) {
      if (entry.kind == Entry::Kind::kWindow && answer.chain != entry.after) return "wrong chain";
      position_ = answer.position;
      chain_ = answer.chain;
      chains_[position_] = chain_;
      next_ = entry.end;
      return "ok " + std::to_string(position_);
    }
    switch (*answer.failure) {
      case Failure::kRefused:
        return "refused " + answer.why;
      case Failure::kUnavailable:
        return "unavailable " + answer.why;
      case Failure::kUnknown:
        return "unknown " + answer.why;
    }
    return "none";
  }

  PostgresLog log_;
  Epoch epoch_ = 0;
  Owner owner_ = {};
  LogNumber next_ = 1;
  Position position_ = 0;
  Chain chain_ = {};
  std::map<Position, Chain> chains_;

  const std::map<std::string, std::function<std::string(std::istream&)>> commands_ = {
      {"check", [this](std::istream& words) { return check(words); }},
      {"claim", [this](std::istream& words) { return claim(words); }},
      {"window", [this](std::istream& words) { return window(words); }},
      {"follow", [this](std::istream& words) { return follow(words); }},
      {"read", [this](std::istream& words) { return read(words); }},
      {"place", [this](std::istream& words) { return place(words); }},
      {"report", [this](std::istream& words) { return report(words); }},
      {"nodes", [this](std::istream& words) { return nodes(words); }},
      {"trim", [this](std::istream& words) { return trim(words); }},
      {"id", [this](std::istream& words) { return id(words); }},
      {"skew", [this](std::istream&) { return "ok " + std::to_string(log_.skew()); }},
      {"measure", [this](std::istream& words) { return measure(words); }},
  };
};

int run(const std::string& url) {
  Driver driver(url);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << driver.run(line) << std::endl;
    } catch (const queue::LogUnavailable& error) {
      std::cout << "unavailable " << error.what() << std::endl;
    } catch (const base::StartError& error) {
      std::cout << "not started " << error.what() << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace carillon::cluster

int main(int argc, char** argv) try {
  return carillon::cluster::run(argc > 1 ? argv[1] : "");
} catch (const carillon::base::StartError& error) {
  std::cout << "not started " << error.what() << std::endl;
  return 1;
}
