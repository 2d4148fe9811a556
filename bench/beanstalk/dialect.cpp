#include "dialect.h"

#include <charconv>
#include <initializer_list>
#include <stdexcept>

namespace carillon::bench {
namespace {

constexpr std::string_view kEnd = "\r\n";

[[noreturn]] void unexpected(std::string_view reply) {
  throw std::runtime_error("unexpected reply: " + std::string(reply.substr(0, reply.find('\r'))));
}

std::size_t number(std::string_view digits) {
  std::size_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

class Beanstalk : public Dialect {
 public:
  std::size_t put(std::string& out, const NewJob& job) const override {
    out += "put 0 " + std::to_string(job.delay_s) + " 120 " + std::to_string(job.body.size());
    out.append(kEnd).append(job.body).append(kEnd);
    return 1;
  }
  std::size_t remove(std::string& out, std::string_view id) const override {
    out.append("delete ").append(id).append(kEnd);
    return 1;
  }
  std::size_t replies_per_change() const override { return 1; }
  std::size_t reserve(std::string& out, std::uint64_t, std::size_t most) const override {
    for (std::size_t i = 0; i < most; ++i) out += "reserve-with-timeout 0\r\n";
    return most;
  }
  std::size_t wait(std::string& out, std::uint64_t) const override {
    out += "reserve\r\n";
    return 1;
  }

  std::size_t length(std::string_view input) const override {
    const std::size_t line = input.find(kEnd);
    if (line == std::string_view::npos) return 0;
    const bool has_body = input.starts_with("RESERVED ");
    const std::size_t whole = line + 2 + (has_body ? body_bytes(input.substr(0, line)) + 2 : 0);
    return whole <= input.size() ? whole : 0;
  }
  std::size_t expect_changes(std::string_view reply) const override {
    if (!reply.starts_with("INSERTED ") && reply != "DELETED\r\n") unexpected(reply);
    return 1;
  }
  void read_jobs(std::string_view reply, std::vector<ReservedJob>& jobs) const override {
    if (reply == "TIMED_OUT\r\n") return;
    if (!reply.starts_with("RESERVED ")) unexpected(reply);
    const std::string_view line = reply.substr(0, reply.find(kEnd));
    const std::string_view id = line.substr(9, line.rfind(' ') - 9);
    jobs.push_back({id, reply.substr(line.size() + 2, body_bytes(line))});
  }

 private:
  static std::size_t body_bytes(std::string_view line) {
    return number(line.substr(line.rfind(' ') + 1));
  }
};

// Takes jobs that are due and moves each to the end of its time to run, so that a job whose worker
// dies comes back: what a reserve promises, in one sorted set. Scores are microseconds.
constexpr std::string_view kReserve =
    "local due = redis.call('ZRANGEBYSCORE', 'q', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2]) "
    "local jobs = {} "
    "for _, id in ipairs(due) do"
    "  redis.call('ZADD', 'q', ARGV[1] + 120000000, id)"
    "  jobs[#jobs + 1] = id"
    "  jobs[#jobs + 1] = redis.call('HGET', 'b', id)"
    " end "
    "return jobs";

class Redis : public Dialect {
 public:
  // The body goes first, so that no crash leaves an id without one. No MULTI: it would only add
  // work for the server.
  std::size_t put(std::string& out, const NewJob& job) const override {
    const std::string id = std::to_string(job.number);
    command(out, {"HSET", "b", id, job.body});
    command(out, {"ZADD", "q", std::to_string(job.now_us + job.delay_s * 1'000'000), id});
    return 2;
  }
  std::size_t remove(std::string& out, std::string_view id) const override {
    command(out, {"ZREM", "q", id});
    command(out, {"HDEL", "b", id});
    return 2;
  }
  std::size_t replies_per_change() const override { return 2; }
  std::size_t reserve(std::string& out, std::uint64_t now_us, std::size_t most) const override {
    command(out, {"EVAL", kReserve, "0", std::to_string(now_us), std::to_string(most)});
    return 1;
  }
  std::size_t wait(std::string& out, std::uint64_t now_us) const override {
    return reserve(out, now_us, 10);
  }

  std::size_t length(std::string_view input) const override {
    const std::size_t line = input.find(kEnd);
    if (line == std::string_view::npos) return 0;
    std::size_t whole = line + 2;
    const std::size_t count = number(input.substr(1, line - 1));
    if (input[0] == '$') whole += count + 2;
    for (std::size_t i = 0; input[0] == '*' && i < count; ++i) {
      const std::size_t element = length(input.substr(whole));
      if (element == 0) return 0;
      whole += element;
    }
    return whole <= input.size() ? whole : 0;
  }
  std::size_t expect_changes(std::string_view reply) const override {
    if (reply != ":1\r\n") unexpected(reply);
    return 1;
  }
  void read_jobs(std::string_view reply, std::vector<ReservedJob>& jobs) const override {
    if (reply.empty() || reply[0] != '*') unexpected(reply);
    reply.remove_prefix(reply.find(kEnd) + 2);
    while (!reply.empty()) {
      const std::string_view id = take_bulk(reply);
      jobs.push_back({id, take_bulk(reply)});
    }
  }

 private:
  static void command(std::string& out, std::initializer_list<std::string_view> words) {
    out += '*' + std::to_string(words.size()) + "\r\n";
    for (const std::string_view word : words) {
      out += '$' + std::to_string(word.size());
      out.append(kEnd).append(word).append(kEnd);
    }
  }
  static std::string_view take_bulk(std::string_view& from) {
    const std::size_t line = from.find(kEnd);
    const std::string_view word = from.substr(line + 2, number(from.substr(1, line - 1)));
    from.remove_prefix(line + 2 + word.size() + 2);
    return word;
  }
};

}  // namespace

std::unique_ptr<Dialect> beanstalk_dialect() {
  return std::make_unique<Beanstalk>();
}
std::unique_ptr<Dialect> redis_dialect() {
  return std::make_unique<Redis>();
}

}  // namespace carillon::bench
