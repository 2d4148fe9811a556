// `carillon top`: what the server does, each second, on the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/top_view.h"
#include "cli/wait.h"
#include "server/api/filters.h"
#include "server/api/reports.h"

namespace carillon::cli {
namespace {

constexpr const char* kTopExamples =
    R"(Keys: s sorts by the next column, q ends it. It goes on when the server
restarts. Lateness is how long after their due times jobs have gone out. A storm
is a minute of the next hour with a tenth of a tube's delayed jobs. Without a
terminal it prints once, after a second.

Examples:
  carillon top
  carillon top --sort puts
  carillon top --once --json | jq .jobs)";

constexpr std::chrono::seconds kPeriod{1};

struct TopRequest {
  ServerAddress server;
  TopOrder order = TopOrder::kDelayed;
  bool once = false;
  bool json = false;
};

void add_rates(TopSnapshot& shot, const TopSnapshot& before, double seconds) {
  const auto rate = [seconds](std::uint64_t then, std::uint64_t now) {
    return seconds > 0 && now >= then ? static_cast<double>(now - then) / seconds : 0.0;
  };
  shot.put_rate = rate(before.stats.jobs.total, shot.stats.jobs.total);
  shot.fired_rate = rate(before.stats.fired, shot.stats.fired);
  shot.delete_rate = rate(before.stats.acked, shot.stats.acked);
  std::map<std::string_view, const server::Tube*> tubes;
  for (const TopTube& one : before.tubes) tubes[one.tube.name] = &one.tube;
  for (TopTube& one : shot.tubes) {
    const auto found = tubes.find(one.tube.name);
    if (found == tubes.end()) continue;
    one.put_rate = rate(found->second->jobs.total, one.tube.jobs.total);
    one.delete_rate = rate(found->second->acked, one.tube.acked);
  }
}

// Asks the server for what it does.
class TopSource {
 public:
  // A wait for the server throws Interrupted once `interrupt_fd` is readable.
  TopSource(const ServerAddress& server, int interrupt_fd) : api_(server, interrupt_fd) {
    api_.rest_at_most(std::chrono::seconds(0));  // the screen shows why there is no answer
  }

  // Throws Unavailable if the server does not answer: the next call connects again. Throws Failure
  // if that will not help.
  TopSnapshot take();

 private:
  using Clock = std::chrono::steady_clock;

  void find_storms(const TopSnapshot& shot);

  Api api_;
  Clock::time_point at_;
  std::optional<TopSnapshot> before_;
  Clock::time_point storms_at_;
  std::vector<TopStorm> storms_;
};

TopSnapshot TopSource::take() {
  constexpr std::uint32_t kMostTubes = 200;
  constexpr std::chrono::seconds kBetweenStorms{5};
  const auto before = std::exchange(before_, std::nullopt);
  const Clock::time_point now = Clock::now();
  TopSnapshot shot;
  shot.at = utc_now_ms();
  shot.server = to_string(api_.server());
  shot.stats = api_.call<server::ServerStats>("getStats", server::AskedNothing{});
  const auto page = api_.call<server::TubePage>("listTubes", server::ListByName{kMostTubes, ""});
  for (const server::Tube& tube : page.tubes) shot.tubes.push_back({.tube = tube});
  shot.all_tubes = page.next_page_token ? shot.stats.tubes : page.tubes.size();
  if (!before || now - storms_at_ >= kBetweenStorms) {
    storms_at_ = now;
    find_storms(shot);
  }
  shot.storms = storms_;
  if (before && before->stats.id == shot.stats.id)
    add_rates(shot, *before, std::chrono::duration<double>(now - at_).count());
  at_ = now;
  before_ = shot;
  return shot;
}

// A storm is a minute with a tenth of a tube's delayed jobs, and at least kLeast. Only the tubes
// with the most delayed jobs are asked about.
void TopSource::find_storms(const TopSnapshot& shot) {
  constexpr std::uint64_t kLeast = 20;
  constexpr std::uint64_t kShare = 10;
  constexpr std::size_t kMostTubes = 5;
  storms_.clear();
  std::vector<server::Tube> tubes;
  for (const TopTube& one : shot.tubes)
    if (one.tube.jobs.delayed >= kLeast) tubes.push_back(one.tube);
  std::sort(tubes.begin(), tubes.end(), [](const server::Tube& a, const server::Tube& b) {
    return a.jobs.delayed > b.jobs.delayed;
  });
  if (tubes.size() > kMostTubes) tubes.resize(kMostTubes);
  for (const server::Tube& tube : tubes) {
    server::GetDue asked;
    asked.tube = tube.name;
    try {
      for (const auto& span : api_.call<server::Due>("getDue", asked).spans)
        if (span.jobs >= std::max(kLeast, tube.jobs.delayed / kShare))
          storms_.push_back({tube.name, span.from.at, span.jobs, span.estimated});
    } catch (const Refusal&) {  // the tube is gone
    }
  }
  std::sort(storms_.begin(), storms_.end(),
            [](const TopStorm& a, const TopStorm& b) { return a.from < b.from; });
}

// Asks the server each second, in a thread of its own, so that a key counts at once whatever the
// server does.
class TopReader {
 public:
  // Throws Failure if the server does not answer at first.
  explicit TopReader(const ServerAddress& server)
      : source_(server, stop_.fd()), first_(source_.take()), thread_([this] { read(); }) {}
  ~TopReader() {
    stop_.set();
    thread_.join();
  }
  TopReader(const TopReader&) = delete;
  TopReader& operator=(const TopReader&) = delete;

  const TopSnapshot& first() const { return first_; }

  struct News {
    std::optional<TopSnapshot> shot;
    std::string trouble;  // why there is no snapshot
  };
  // Returns what came since the last call, if anything.
  std::optional<News> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, std::nullopt);
  }

 private:
  void tell(News news) {
    const std::lock_guard lock(mutex_);
    news_ = std::move(news);
  }

  void read() {
    try {
      while (!wait_for(-1, 0, kPeriod, stop_.fd())) {
        try {
          tell({.shot = source_.take(), .trouble = {}});
        } catch (const Interrupted&) {
          throw;
        } catch (const std::exception& error) {  // whatever the server has said
          tell({.shot = {}, .trouble = error.what()});
        }
      }
    } catch (const Interrupted&) {  // the end
    }
  }

  Event stop_;
  TopSource source_;
  TopSnapshot first_;
  std::mutex mutex_;
  std::optional<News> news_;  // protected by mutex_
  std::thread thread_;
};

std::string text_of(const TopSnapshot& shot, const TopRequest& request) {
  std::string text;
  const TopLook look{.colours = wants_colours(), .order = request.order, .trouble = {}};
  for (const std::string& line : top_lines(shot, look)) text += line + "\n";
  return text;
}

// Prints once, or as JSON each second.
void print(const TopRequest& request, const StopSignals& stop) {
  TopSource source(request.server, stop.fd());
  source.take();
  bool is_lost = false;
  do {
    wait_for(-1, 0, kPeriod, stop.fd());
    try {
      const TopSnapshot shot = source.take();
      request.json ? write_out(top_json(shot, request.order)) : write_bytes(text_of(shot, request));
      is_lost = false;
    } catch (const Unavailable& error) {
      if (request.once || !request.json) throw;
      if (!std::exchange(is_lost, true)) remark(fmt::format("carillon top: {}", error.what()));
    }
  } while (request.json && !request.once);
}

void show(const TopRequest& request, const StopSignals& stop) {
  constexpr std::chrono::milliseconds kGlance{100};  // news are shown after this time
  Stream::connect_http(request.server, stop.fd());   // a signal ends this wait, too
  TopReader reader(request.server);
  TopSnapshot shot = reader.first();
  TopLook look{.colours = wants_colours(), .order = request.order, .trouble = {}};
  Screen screen;
  for (bool is_new = true;;) {
    if (auto news = reader.take()) {
      if (news->shot) shot = *std::move(news->shot);
      look.trouble = std::move(news->trouble);
      is_new = true;
    }
    look.columns = screen.size().columns;
    look.rows = screen.size().rows;
    if (is_new) screen.draw(top_lines(shot, look));
    const Screen::Event event = screen.wait(kGlance, stop.fd());
    const bool is_key = event == Screen::Event::kKey;
    if (event == Screen::Event::kStop || (is_key && screen.key() == 'q')) return;
    if (is_key && screen.key() == 's') look.order = next_order(look.order);
    is_new = event != Screen::Event::kTime;
  }
}

int top(const TopRequest& request) {
  const StopSignals stop;
  try {
    request.once || request.json || !has_screen() ? print(request, stop) : show(request, stop);
  } catch (const Interrupted&) {  // it was asked to end
  }
  return kSuccess;
}

}  // namespace

void add_top(CLI::App& command, int& exit_code) {
  TopRequest& request = set_action(command, exit_code, kTopExamples, top);
  add_value(command, "--sort COLUMN", request.order, parse_top_order,
            "By delayed, ready, reserved, buried, puts, deletes or name (delayed)");
  add_flag(command, "--once", request.once, "Print once, and end");
  add_json_and_server(command, request, "Print a JSON object each second");
}

}  // namespace carillon::cli
