#include "timer/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>

#include "timer/fire_log.h"

namespace carillon::bench {
namespace {

constexpr std::int64_t kPatience = 120'000'000'000;  // ns

// Appends everything that comes out of the pipe `end` to `text`. Returns false if that takes longer
// than kPatience.
bool read_all(int end, std::string& text) {
  const std::int64_t deadline = FireLog::now() + kPatience;
  for (;;) {
    const std::int64_t left_ms = (deadline - FireLog::now()) / 1'000'000;
    pollfd ready{end, POLLIN, 0};
    if (left_ms <= 0 || ::poll(&ready, 1, static_cast<int>(left_ms)) == 0) return false;
    char part[4096];
    const ssize_t got = ::read(end, part, sizeof part);
    if (got <= 0) return true;
    text.append(part, static_cast<std::size_t>(got));
  }
}

// Runs `body` in a child process, and returns what it writes to the descriptor that it gets.
std::string output_of(const std::function<void(int)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    ::close(ends[0]);
    body(ends[1]);
    ::_exit(1);
  }
  ::close(ends[1]);
  std::string text;
  const bool in_time = read_all(ends[0], text);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!in_time) throw std::runtime_error("took longer than two minutes");
  if (status != 0) throw std::runtime_error(text.empty() ? "the process died" : text);
  return text;
}

void write_all(int end, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(end, text.data() + done, text.size() - done);
    if (wrote <= 0) return;
    done += static_cast<std::size_t>(wrote);
  }
}

std::string as_lines(const Figures& figures) {
  std::ostringstream text;
  text.precision(12);
  for (const auto& [name, value] : figures) text << name << ' ' << value << '\n';
  return text.str();
}

Figures as_figures(const std::string& lines) {
  std::istringstream text(lines);
  Figures figures;
  std::string name;
  for (double value = 0; text >> name >> value;) figures[name] = value;
  return figures;
}

}  // namespace

Figures in_child(const std::function<Figures()>& measure) {
  return as_figures(output_of([&](int out) {
    try {
      write_all(out, as_lines(measure()));
      ::_exit(0);
    } catch (const std::exception& error) {
      write_all(out, error.what());
    }
  }));
}

std::vector<std::string> Peer::systems() const {
  std::istringstream text(output({"--systems"}));
  std::vector<std::string> names;
  for (std::string name; std::getline(text, name);) names.push_back(name);
  return names;
}

Figures Peer::measure(const std::string& system, const Plan& plan) const {
  return as_figures(output({system, kTrialNames[static_cast<std::size_t>(plan.trial)],
                            std::to_string(plan.producers), std::to_string(plan.timers),
                            std::to_string(plan.pairs), std::to_string(plan.lead_ms),
                            std::to_string(plan.span_ms)}));
}

std::string Peer::output(const std::vector<std::string>& arguments) const {
  return output_of([&](int out) {
    std::vector<std::string> words = command_;
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> line;
    for (auto& word : words) line.push_back(word.data());
    line.push_back(nullptr);
    ::dup2(out, STDOUT_FILENO);
    ::execvp(line.front(), line.data());
    write_all(out, words.front() + ": cannot be run");
  });
}

}  // namespace carillon::bench
