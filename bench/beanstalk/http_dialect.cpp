// The HTTP API of Carillon as a Dialect: a request for each job, or one for each batch of puts.
#include <stdexcept>
#include <string>

#include "dialect.h"

namespace carillon::bench {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

void request(std::string& out, std::string_view line, std::string_view headers,
             std::string_view body) {
  out.append(line).append(" HTTP/1.1\r\nHost: localhost\r\n").append(headers);
  out.append("Content-Length: ").append(std::to_string(body.size())).append(kHeadEnd).append(body);
}

// The bodies of the benchmarks are printable ASCII.
void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

class Http : public Dialect {
 public:
  std::size_t put(std::string& out, const NewJob& job) const override {
    const std::string delay = "Carillon-Delay: " + std::to_string(job.delay_s) + "s\r\n";
    request(out, "POST /v1/tubes/default/jobs", delay, job.body);
    return 1;
  }
  std::size_t remove(std::string& out, std::string_view id) const override {
    request(out, std::string("POST /v1/leases/").append(id).append(":ack"), "", "");
    return 1;
  }
  std::size_t replies_per_change() const override { return 1; }
  std::size_t reserve(std::string& out, std::uint64_t, std::size_t most) const override {
    request(out, "POST /v1/tubes/default:reserve", "", "{\"max\":" + std::to_string(most) + "}");
    return 1;
  }
  std::size_t wait(std::string& out, std::uint64_t) const override {
    request(out, "POST /v1/tubes/default:reserve", "", R"({"wait":"1h"})");
    return 1;
  }

  std::size_t length(std::string_view input) const override {
    const std::size_t head = input.find(kHeadEnd);
    if (head == std::string_view::npos) return 0;
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t field = input.substr(0, head).find(kLength);
    const bool has_body = field != std::string_view::npos;
    const std::size_t whole =
        head + kHeadEnd.size() +
        (has_body ? std::stoul(std::string(input.substr(field + kLength.size(), 20))) : 0);
    return whole <= input.size() ? whole : 0;
  }
  std::size_t expect_changes(std::string_view reply) const override {
    if (!reply.starts_with("HTTP/1.1 201") && !reply.starts_with("HTTP/1.1 204")) refuse(reply);
    return 1;
  }
  void read_jobs(std::string_view reply, std::vector<ReservedJob>& jobs) const override {
    if (!reply.starts_with("HTTP/1.1 200")) refuse(reply);
    // A lease stands behind the body of its job. No body has an unescaped quote.
    constexpr std::string_view kBody = "\"body\":\"";
    constexpr std::string_view kLease = "\"lease\":\"";
    for (std::size_t at = reply.find(kBody); at != std::string_view::npos;
         at = reply.find(kBody, at)) {
      at += kBody.size();
      const std::size_t lease = reply.find(kLease, at) + kLease.size();
      const std::size_t end = reply.find('"', lease);
      jobs.push_back(
          {reply.substr(lease, end - lease), reply.substr(at, reply.find("\",\"", at) - at)});
      at = end;
    }
  }

 protected:
  [[noreturn]] static void refuse(std::string_view reply) {
    throw std::runtime_error("unexpected reply: " + std::string(reply.substr(0, 300)));
  }
};

// The items of a batch are collected in `out`, and the request is written around them at its end.
class HttpBatches final : public Http {
 public:
  std::size_t put(std::string& out, const NewJob& job) const override {
    out += out.empty() ? "{\"jobs\":[{\"body\":" : ",{\"body\":";
    append_json_string(out, job.body);
    out += ",\"delay\":\"" + std::to_string(job.delay_s) + "s\"}";
    return 0;
  }
  std::size_t end_puts(std::string& out) const override {
    const std::string body = out + "]}";
    out.clear();
    request(out, "POST /v1/tubes/default/jobs:batch", "Content-Type: application/json\r\n", body);
    return 1;
  }
  std::size_t expect_changes(std::string_view reply) const override {
    if (!reply.starts_with("HTTP/1.1 200")) return Http::expect_changes(reply);
    std::size_t changes = 0;
    constexpr std::string_view kPut = "\"status\":201";
    for (std::size_t at = reply.find(kPut); at != std::string_view::npos;
         at = reply.find(kPut, at + 1))
      ++changes;
    return changes;
  }
};

}  // namespace

std::unique_ptr<Dialect> http_dialect() {
  return std::make_unique<Http>();
}
std::unique_ptr<Dialect> http_batch_dialect() {
  return std::make_unique<HttpBatches>();
}

}  // namespace carillon::bench
