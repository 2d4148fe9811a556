// Service and the Identity of this process (service.h).
#include "server/service.h"

#include <spdlog/spdlog.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

namespace carillon::server {
namespace {

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// Clients read the version as a number, so it must not have a third part.
std::string major_minor(std::string_view version) {
  const std::size_t first = version.find('.');
  const std::size_t second = first == std::string_view::npos ? first : version.find('.', first + 1);
  return std::string(version.substr(0, second));
}

}  // namespace

Identity Identity::of_this_process() {
  utsname names{};
  ::uname(&names);
  return {.pid = ::getpid(),
          .version = major_minor(CARILLON_VERSION),
          .id = random_id(),
          .hostname = names.nodename,
          .os = names.version,
          .platform = names.machine};
}

Service::Service(queue::Engine& engine, queue::Store& store, BodyQueue& bodies,
                 std::function<queue::Now()> clock, const ServiceOptions& options, DiskSpace disk,
                 queue::DiskStore* on_disk)
    : engine_(engine),
      store_(store),
      bodies_(bodies),
      clock_(std::move(clock)),
      options_(options),
      identity_(Identity::of_this_process()),
      started_ns_(now().mono_ns),
      disk_(std::move(disk)),
      on_disk_(on_disk),
      checkpoint_(on_disk),
      memory_(options.memory),
      leases_(engine, memory_),
      long_changes_(engine),
      requests_in_flight_(memory_),
      first_answers_(memory_),
      feed_(*this) {
  if (store.is_shared()) barrier_.emplace(engine);
}

std::size_t Service::free_memory() const {
  if (!is_out_of_memory()) return memory_.free();
  const std::size_t bound = used_with_reserve_ + MemoryReserve::kBytes / 4;
  return std::min(memory_.free(), bound - std::min(bound, memory_.used()));
}

void Service::renew_reserve() {
  if (is_out_of_memory()) options_.reserve->renew();
  if (!is_out_of_memory()) used_with_reserve_ = memory_.used();
}

void Service::report_out_of_memory(std::string_view why) {
  const auto held_back = refusals_.pass(last_now().mono_ns);
  if (!held_back) return;
  spdlog::warn(
      "a command was answered OUT_OF_MEMORY: {}, see carillon serve --memory ({} more such since "
      "the last line)",
      why, *held_back);
}

bool Service::store_is_full() {
  if (!options_.stored || options_.stored() < options_.max_stored) return false;
  report_out_of_memory("the jobs take all that they may");
  return true;
}

// While no client puts, nobody else would check the disk again.
void Service::save_space(std::uint64_t mono_ns) {
  constexpr std::uint64_t kPeriodNs = 1'000'000'000;
  if (mono_ns < next_save()) return;
  next_save_ns_ = mono_ns + kPeriodNs;
  const bool is_low = disk_.low(mono_ns);
  const bool is_done = on_disk_ == nullptr || on_disk_->save_space(is_low);
  saves_space_ = is_low || !is_done;
}

void Service::report_store_failure(std::string_view error) {
  const auto held_back = failures_.pass(now().mono_ns);
  if (!held_back) return;
  spdlog::error(
      "the store failed, and a command was not carried out, or not to its end: {} ({} more such "
      "since the last line)",
      error, *held_back);
}

void Service::report_cut_reply(std::string_view why) {
  const auto held_back = cut_replies_.pass(last_now().mono_ns);
  if (!held_back) return;
  spdlog::warn(
      "closed a connection in the middle of a reply: {} ({} more such since the last line)", why,
      *held_back);
}

}  // namespace carillon::server
