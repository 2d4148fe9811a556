// `carillon top`: what the server does, each second, on the terminal.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "cli/top_source.h"
#include "cli/top_view.h"
#include "cli/wait.h"

namespace carillon::cli {
namespace {

constexpr const char* kExamples =
    R"(Keys: s sorts by the next column, q ends it. It goes on when the server
restarts. Lateness is how long after their due times jobs have gone out. A storm
is a minute of the next hour with a tenth of a tube's delayed jobs. Without a
terminal it prints once, after a second.

Examples:
  carillon top
  carillon top --sort puts
  carillon top --once --json | jq .jobs)";

constexpr std::chrono::seconds kPeriod{1};

struct Request {
  ServerAddress server;
  TopOrder order = TopOrder::kDelayed;
  bool once = false;
  bool json = false;
};

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
    std::string trouble;  // why there is none
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

std::string text_of(const TopSnapshot& shot, const Request& request) {
  std::string text;
  const TopLook look{.colours = wants_colours(), .order = request.order, .trouble = {}};
  for (const std::string& line : top_lines(shot, look)) text += line + "\n";
  return text;
}

// Once, or as JSON each second.
void print(const Request& request, const StopSignals& stop) {
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

void show(const Request& request, const StopSignals& stop) {
  constexpr std::chrono::milliseconds kGlance{100};  // so soon what has come is shown
  Stream::connect(request.server, stop.fd());        // a signal ends this wait, too
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

int top(const Request& request) {
  const StopSignals stop;
  try {
    request.once || request.json || !has_screen() ? print(request, stop) : show(request, stop);
  } catch (const Interrupted&) {  // it was asked to end
  }
  return kSuccess;
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<Request>();
  CLI::App& command = add_subcommand(app, "top", kExamples);
  add_value(command, "--sort", request->order, parse_top_order,
            "By delayed, ready, reserved, buried, puts,\ndeletes or name (delayed)")
      .type_name("COLUMN");
  add_flag(command, "--once", request->once, "Print once, and end");
  add_flag(command, "--json", request->json, "Print a JSON object each second");
  add_server_option(command, request->server);
  when_parsed(command, [request, &exit_code] { exit_code = top(*request); });
}

}  // namespace carillon::cli
