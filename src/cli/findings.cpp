// The texts of findings, for people and as JSON.

#include "cli/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string_view>
#include <utility>

namespace carillon::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 20;  // where the text begins

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarn:
      return "warn";
    case Level::kFail:
      return "fail";
  }
  return "";
}

// Appends the words to `text`, whose last line has `column` columns. A word that is wider than a
// line stands alone.
void append_wrapped(std::string& text, std::size_t column, std::size_t indent,
                    std::string_view words) {
  bool first = true;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    if (!first && column + 1 + word.size() > kWidth) {
      text += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
    first = false;
  }
  text += '\n';
}

}  // namespace

void Findings::ok(std::string subject, std::string found) {
  findings_.push_back({Level::kOk, std::move(subject), std::move(found), ""});
}

void Findings::warn(std::string subject, std::string found, std::string advice) {
  findings_.push_back({Level::kWarn, std::move(subject), std::move(found), std::move(advice)});
}

void Findings::fail(std::string subject, std::string found, std::string advice) {
  findings_.push_back({Level::kFail, std::move(subject), std::move(found), std::move(advice)});
}

std::string Findings::text() const {
  std::string text;
  for (const Finding& finding : findings_) {
    text += fmt::format("{:<6}{:<14}", name_of(finding.level), finding.subject);
    append_wrapped(text, kIndent, kIndent, finding.found);
    if (finding.advice.empty()) continue;
    text += std::string(kIndent, ' ') + "-> ";
    append_wrapped(text, kIndent + 3, kIndent + 3, finding.advice);
  }
  return text;
}

std::string Findings::json() const {
  boost::json::array list;
  for (const Finding& finding : findings_) {
    boost::json::object object{
        {"level", name_of(finding.level)}, {"subject", finding.subject}, {"found", finding.found}};
    if (!finding.advice.empty()) object["advice"] = finding.advice;
    list.push_back(std::move(object));
  }
  const boost::json::object whole{{"result", name_of(worst())}, {"findings", std::move(list)}};
  return boost::json::serialize(whole) + "\n";
}

Level Findings::worst() const {
  Level worst = Level::kOk;
  for (const Finding& finding : findings_) worst = std::max(worst, finding.level);
  return worst;
}

int Findings::exit_code() const {
  return static_cast<int>(worst());
}

}  // namespace carillon::cli
