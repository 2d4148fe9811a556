// The languages of delayed-job servers that the load program speaks: beanstalk's, Carillon's HTTP
// (http_dialect.cpp), and that of Redis with one sorted set of ids by due time and one hash of
// bodies. A Dialect writes commands and reads replies; it does no input or output itself.
//
//   std::string commands;
//   std::size_t replies = dialect.put(commands, job);
//   ... dialect.length(input) == 0: the reply has not arrived in full
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace carillon::bench {

struct NewJob {
  std::uint64_t number;  // from 1 on, unique in a run; a beanstalk server chooses the same ids
  std::uint64_t now_us;  // UTC
  std::uint64_t delay_s;
  std::string_view body;
};

struct ReservedJob {
  std::string_view id;
  std::string_view body;
};

class Dialect {
 public:
  virtual ~Dialect() = default;

  // Each appends commands to `out` and returns how many replies will answer them. A put and a
  // remove have the same number of replies, `replies_per_change()`.
  virtual std::size_t put(std::string& out, const NewJob& job) const = 0;
  virtual std::size_t remove(std::string& out, std::string_view id) const = 0;
  virtual std::size_t replies_per_change() const = 0;
  // To be called when all puts that are sent together were appended to an empty `out`: a dialect
  // that puts many jobs by one command writes it now. Returns how many more replies will come.
  virtual std::size_t end_puts(std::string&) const { return 0; }
  // Reserves up to `most` jobs that are due at `now_us` (UTC), and does not wait for any.
  virtual std::size_t reserve(std::string& out, std::uint64_t now_us, std::size_t most) const = 0;

  // How a worker asks for its next work. Beanstalk: one job, and the server answers when it is
  // due. Redis: up to 10 jobs, and an answer without a job means: ask again after some time.
  virtual std::size_t wait(std::string& out, std::uint64_t now_us) const = 0;

  // Returns the bytes of the first reply in `input`, or 0 if it has not arrived in full.
  virtual std::size_t length(std::string_view input) const = 0;
  // Throw std::runtime_error for a reply that is not the expected one. `expect_changes` returns of
  // how many changes the reply tells, or is a part. `read_jobs` appends to `jobs`, which point into
  // `reply`.
  virtual std::size_t expect_changes(std::string_view reply) const = 0;
  virtual void read_jobs(std::string_view reply, std::vector<ReservedJob>& jobs) const = 0;
};

std::unique_ptr<Dialect> beanstalk_dialect();
std::unique_ptr<Dialect> redis_dialect();
// What `read_jobs` calls the id of a job is its lease here, and its body is as it stands in JSON.
std::unique_ptr<Dialect> http_dialect();
// The same, but the puts that are sent together are one request.
std::unique_ptr<Dialect> http_batch_dialect();

}  // namespace carillon::bench
