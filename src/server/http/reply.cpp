// Makes the bytes of replies (reply.h).
#include "server/http/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <iterator>

namespace carillon::server::http {

namespace {

// Sun, 06 Nov 1994 08:49:37 GMT (RFC 9110, 5.6.7).
std::string format_date(std::chrono::sys_seconds at) {
  namespace chrono = std::chrono;
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = chrono::floor<chrono::days>(at);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(at - day);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays.at(chrono::weekday(day).c_encoding()), static_cast<unsigned>(date.day()),
                     kMonths.at(static_cast<unsigned>(date.month()) - 1),
                     static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

// All replies in a second have the same date: to format it takes as long as the rest of a head.
const std::string& date_of(std::uint64_t utc_ns) {
  const std::chrono::sys_seconds at(std::chrono::seconds(utc_ns / 1'000'000'000));
  thread_local std::chrono::sys_seconds of = at;
  thread_local std::string date = format_date(of);
  if (of != at) {
    of = at;
    date = format_date(at);
  }
  return date;
}

}  // namespace

std::string head_of(const Reply& reply, bool keep_alive, std::uint64_t utc_ns) {
  std::string head;
  const auto out = std::back_inserter(head);
  const std::string_view reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(reply.status));
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", reply.status, reason);
  fmt::format_to(out, "Date: {}\r\n", date_of(utc_ns));
  // These statuses have no body and no Content-Length (RFC 9110, section 8.6).
  if (reply.status != 204 && reply.status != 304)
    fmt::format_to(out, "Content-Length: {}\r\n",
                   reply.large ? reply.large->bytes : reply.body.size());
  if (!reply.body.empty() || reply.status == 200)
    fmt::format_to(out, "Content-Type: {}\r\n", reply.type);
  for (const auto& [name, value] : reply.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  // Answers change all the time: no cache may keep them, unless the reply says otherwise.
  const auto& headers = reply.headers;
  if (std::none_of(headers.begin(), headers.end(),
                   [](const auto& one) { return one.first == "Cache-Control"; }))
    head += "Cache-Control: no-store\r\n";
  head += "X-Content-Type-Options: nosniff\r\n";
  if (!keep_alive) head += "Connection: close\r\n";
  head += "\r\n";
  return head;
}

std::string head_of_events(std::uint64_t utc_ns) {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nDate: {}\r\nContent-Type: text/event-stream\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Accel-Buffering: no\r\n"
      "Connection: close\r\n\r\n",
      date_of(utc_ns));
}

}  // namespace carillon::server::http
