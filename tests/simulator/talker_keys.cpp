// Random commands about jobs with keys (talker_parts.h).

#include "simulator/talker_parts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/requests.h"
#include "simulator/talker_words.h"

namespace carillon::simulator {

namespace {

using queue::Millis;
using queue::OnConflict;

// As a put-job has them that does not name them.
constexpr Millis kUsualTtr = 60'000;

std::string random_key(Random& random) {
  constexpr std::array<const char*, 7> kKeys = {"1", "2", "order-7", "a/b", "x=y", "\xC3\xA9", ""};
  const std::string key = kKeys[below(random, kKeys.size())];
  return key.empty() ? std::string(queue::kMaxKey, 'k') : key;
}

Millis random_ttr(Random& random) {
  return one_of(random, std::array<std::uint64_t, 5>{1'000, 1'000, 1'500, 3'000, 120'000});
}

Millis random_window(Random& random) {
  return one_of(random, std::array<std::uint64_t, 6>{1, 700, 2'000, 70'000, 3'600'000,
                                                     40ULL * 24 * 3'600'000});
}

queue::UtcMs random_moment(Random& random, queue::Now now) {
  return now.utc_ns / 1'000'000 + below(random, 200'000) - 10'000;
}

Millis random_time(Random& random) {
  return below(random, 2) == 0 ? below(random, 3'000) : random_delay(random);
}

// Names a job by its id or by its key.
std::string name_job(Command& command, const Model& model, Random& random) {
  if (below(random, 4) == 0) {
    command.id = some_id(model, random);
    return number(command.id);
  }
  command.key = random_key(random);
  return "key=" + command.key;
}

// When a job is due, as its options say.
struct DueOptions {
  Millis delay = 0;  // at most, with a spread
  std::optional<queue::UtcMs> at = {};
};

// A job that would expire before it is due is refused. The clock may be set before the server reads
// the options: so a moment goes with a moment, and a duration with a duration.
ExpiryOptions random_expiry(std::vector<std::string>& options, bool of_put, Random& random,
                            queue::Now now, const DueOptions& due) {
  ExpiryOptions expiry;
  const std::uint64_t when = below(random, 8);
  const bool is_span = due.at ? false : due.delay > 0 || when < 4;
  if (when < 6 && is_span) {
    expiry.in = one_of(
        random, std::array<std::uint64_t, 6>{1, 300, 1'500, 2'000, 70'000, 40ULL * 24 * 3'600'000});
    if (*expiry.in <= due.delay) *expiry.in += due.delay;
    options.push_back("expires-in=" + duration(*expiry.in));
  } else if (when < 6) {
    expiry.at = random_moment(random, now);
    if (due.at && *expiry.at <= *due.at + due.delay) expiry.at = *due.at + due.delay + 1;
    options.push_back("expires-at=" + number(*expiry.at));
  } else if (when == 6) {
    expiry.at = queue::kNeverExpires;
    options.emplace_back("expires-at=never");
  }
  if ((of_put && when == 7) || below(random, 2) == 0) return expiry;
  expiry.then = below(random, 3) == 0 ? queue::AtExpiry::kDrop : queue::AtExpiry::kDead;
  options.emplace_back(expiry.then == queue::AtExpiry::kDrop ? "at-expiry=drop" : "at-expiry=dead");
  return expiry;
}

std::string random_conflict(Command& put, Random& random) {
  struct Way {
    const char* name;
    OnConflict way;
  };
  constexpr std::array<Way, 5> kWays = {{{"reject", OnConflict::kReject},
                                         {"ignore", OnConflict::kIgnore},
                                         {"replace", OnConflict::kReplace},
                                         {"keep-due", OnConflict::kKeepDue},
                                         {"debounce", OnConflict::kDebounce}}};
  const Way& way = kWays[below(random, kWays.size())];
  put.on_conflict = way.way;
  return std::string("on-conflict=") + way.name;
}

}  // namespace

Command random_put_job(Random& random, queue::Now now, std::string body) {
  Command put{.verb = Verb::kPutJob, .priority = kUsualPriority, .ttr = kUsualTtr};
  put.body = std::move(body);
  std::vector<std::string> options;
  if (below(random, 4) != 0) {
    put.priority = random_priority(random);
    options.push_back("pri=" + number(put.priority));
  }
  if (below(random, 4) != 0) {
    put.ttr = random_ttr(random);
    options.push_back("ttr=" + duration(put.ttr));
  }
  const std::uint64_t when = below(random, 4);
  if (when == 0) {
    put.due_at = random_moment(random, now);
    options.push_back("due=" + number(*put.due_at));
  } else if (when < 3) {
    put.delay = random_time(random);
    options.push_back("delay=" + duration(put.delay));
  }
  if (below(random, 8) != 0) {
    put.key = random_key(random);
    options.push_back("key=" + put.key);
    if (below(random, 8) != 0) options.push_back(random_conflict(put, random));
    if (below(random, 2) == 0) {
      put.key_window = random_window(random);
      options.push_back("key-window=" + duration(put.key_window));
    }
  }
  if (below(random, 3) == 0) {
    put.group = random_group(random);
    options.push_back("group=" + put.group);
  }
  if (below(random, 4) == 0) put.policy = random_policy(random);
  add_policy(options, put.policy);
  if (below(random, 8) == 0) {
    put.attributes = random_attributes(random);
    options.push_back("attributes=" + *put.attributes);
  }
  if (below(random, 8) == 0) {
    put.spread = one_of(random, std::array<std::uint64_t, 4>{1, 300, 20'000, 200'000});
    options.push_back("spread=" + duration(put.spread));
  }
  const DueOptions due{.delay = put.delay + put.spread, .at = put.due_at};
  if (below(random, 4) == 0) put.expiry = random_expiry(options, true, random, now, due);
  if (below(random, 12) == 0) {
    put.buried = below(random, 4) != 0;
    options.emplace_back(put.buried ? "buried=yes" : "buried=no");
  }
  put.bytes = "put-job " + number(put.body.size()) + line_of(std::move(options), random) +
              put.body + "\r\n";
  return put;
}

Command random_patch(const Model& model, Random& random, queue::Now now, std::size_t most_bytes) {
  Command command{.verb = Verb::kPatchJob};
  const std::string name = name_job(command, model, random);
  std::vector<std::string> options;
  if (below(random, 3) == 0) {
    command.patch.priority = random_priority(random);
    options.push_back("pri=" + number(*command.patch.priority));
  }
  if (below(random, 3) == 0) {
    command.patch.ttr = random_ttr(random);
    options.push_back("ttr=" + duration(*command.patch.ttr));
  }
  const std::uint64_t when = below(random, 4);
  if (when == 0) {
    command.patch.due_at = random_moment(random, now);
    options.push_back("due=" + number(*command.patch.due_at));
  } else if (when == 1) {
    command.patch.due_in = random_time(random);
    options.push_back("delay=" + duration(*command.patch.due_in));
  }
  const DueOptions due{.delay = command.patch.due_in.value_or(0), .at = command.patch.due_at};
  if (below(random, 4) == 0) command.expiry = random_expiry(options, false, random, now, due);
  if (below(random, 8) == 0) {
    command.attributes = random_attributes(random);
    options.push_back("attributes=" + *command.attributes);
  }
  std::string body;
  if (below(random, 2) == 0) {
    command.has_body = true;
    command.body = random_body(random);
    if (below(random, 64) == 0) command.body.resize(below(random, most_bytes + 1), '+');
    options.push_back("body=" + number(command.body.size()));
    body = command.body + "\r\n";
  }
  command.bytes = "patch-job " + name + line_of(std::move(options), random) + body;
  return command;
}

Command random_cancel(const Model& model, Random& random) {
  Command command{.verb = Verb::kCancelJob};
  command.bytes = "cancel-job " + name_job(command, model, random);
  command.asks = below(random, 3) == 0;
  command.bytes += command.asks ? " reserved=ask\r\n" : "\r\n";
  return command;
}

Command random_bury_job(const Model& model, Random& random) {
  Command command{.verb = Verb::kBuryJob, .id = some_id(model, random)};
  if (below(random, 2) == 0) command.patch.priority = random_priority(random);
  write_request(command);
  return command;
}

Command random_show_job(const Model& model, Random& random) {
  Command command{.verb = Verb::kShowJob};
  name_job(command, model, random);
  if (!command.key.empty()) command.tube = random_tube(random);
  write_request(command);
  return command;
}

Command random_peek_job(const Model& model, Random& random) {
  Command command{.verb = Verb::kPeekJob};
  command.bytes = "peek-job " + name_job(command, model, random) + "\r\n";
  return command;
}

}  // namespace carillon::simulator
