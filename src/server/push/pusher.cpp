// Pusher: endpoints, slots, and turns (pusher.h).
#include "server/push/pusher.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/start_error.h"
#include "server/net/clock.h"
#include "server/push/slot.h"
#include "server/push/webhook.h"
#include "server/service.h"

namespace carillon::server::push {

namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

// The memory of a slot at work beside the body: the connection, and its buffers.
constexpr std::size_t kSlotBytes = 96 << 10;
constexpr queue::Millis kTtrBeyond = 30'000;  // after the end of an attempt
constexpr milliseconds kGrace{2'000};
constexpr std::uint64_t kBudget = 1'000'000;  // ns of a turn

}  // namespace

Pusher::Pusher(asio::io_context& io, Service& service, std::function<queue::Sequence()> durable,
               const PushOptions& options)
    : io_(io),
      service_(service),
      durable_(std::move(durable)),
      guard_(options.allowed),
      tls_(asio::ssl::context::tls_client),
      most_kept_(std::min(kMostKept, options.sockets / 8)),
      most_at_work_(std::min(options.sockets, kMostSockets) - most_kept_ - kMostTrials),
      kept_(io, service.memory(), most_kept_),
      timer_(io) {
  boost::system::error_code error;
  tls_.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  if (options.ca_file.empty()) {
    tls_.set_default_verify_paths(error);
  } else if (tls_.load_verify_file(options.ca_file, error)) {
    throw base::StartError(fmt::format("--push-ca {}: {}", options.ca_file, error.message()));
  }
}

Pusher::~Pusher() {
  for (const auto& trial : trials_) trial->abort();
  for (const auto& [name, target] : targets_)
    for (const auto& slot : target->slots)
      if (slot->connection) slot->connection->abort();
}

// --- Endpoints.

void Pusher::take_over_endpoints() {
  const queue::Engine& engine = service_.engine();
  if (engine.endpoint_changes() == changes_seen_) return;
  changes_seen_ = engine.endpoint_changes();
  fill_ = true;
  for (const auto& [name, target] : targets_) target->removed = true;
  for (const auto& [name, endpoint] : engine.endpoints()) {
    auto& target = targets_[name];
    if (!target) target = std::make_unique<Target>(Target{.name = name, .endpoint = {}});
    target->removed = false;
    if (target->endpoint == endpoint) continue;
    // A slot may wait for a job of the old tube.
    stop_waiting(*target);
    if (endpoint.url != target->endpoint.url) kept_.close(target->url);
    target->endpoint = endpoint;
    ++target->version;
    target->rests_until = 0;
    try {
      target->url = parse_target(endpoint.url);
    } catch (const std::invalid_argument& error) {  // a newer version may have known more of them
      target->endpoint.disabled = error.what();
      note_error(*target, error.what());
    }
  }
}

bool Pusher::may_take(const Target& target) const {
  const bool has_room = in_flight_ < std::min(kMostInFlight, most_at_work_ / 2) ||
                        (in_flight_ < most_at_work_ && target.in_flight == 0);
  return !stopping_ && target.is_on() && has_room &&
         target.in_flight < target.endpoint.concurrency && read_mono() >= target.takes_at();
}

void Pusher::fill(Target& target, std::uint64_t until) {
  using State = Slot::State;
  do {
    Slot* waiting = nullptr;
    Slot* free = nullptr;
    for (const auto& slot : target.slots) {
      if (slot->state == State::kWaiting) waiting = slot.get();
      if (slot->state == State::kFree) free = slot.get();
    }
    if (!may_take(target)) {
      if (waiting != nullptr) end(*waiting);
      return;
    }
    if (waiting != nullptr) return;
    if (free == nullptr) {
      target.slots.push_back(std::make_unique<Slot>(target, service_.memory()));
      free = target.slots.back().get();
    }
    begin(*free);
    if (free->state == State::kFree) return;
  } while (read_mono() < until);
  again_ = true;
}

void Pusher::begin(Slot& slot) {
  Target& target = slot.target;
  queue::Engine& engine = service_.engine();
  const queue::Now now = service_.now();
  slot.client = engine.connect();
  slot.state = Slot::State::kWaiting;
  slot.version = target.version;
  by_client_[slot.client] = &slot;
  try {
    engine.watch(slot.client, target.endpoint.tube);
    if (target.endpoint.tube != "default") engine.ignore(slot.client, "default");
    engine.name_client(slot.client, "push " + target.name);
    if (const auto delivery = engine.reserve(slot.client, now, std::nullopt)) deliver(*delivery);
  } catch (const std::runtime_error& error) {  // queue::StoreError, queue::OverLimit
    end(slot);
    hold_off(target, error.what());
  }
}

// --- A job.

bool Pusher::deliver(const queue::Delivery& delivery) {
  const auto found = by_client_.find(delivery.client);
  if (found == by_client_.end()) return false;
  Slot& slot = *found->second;
  if (slot.state != Slot::State::kWaiting) return true;
  fill_ = true;
  if (delivery.kind == queue::Delivery::Kind::kReserved) {
    take(slot, delivery.job);
  } else {
    end(slot);
  }
  return true;
}

void Pusher::take(Slot& slot, const queue::JobView& job) {
  slot.job = job;
  if (service_.barrier() != nullptr) slot.job.durable_at = service_.barrier()->next();
  slot.state = Slot::State::kHeld;
  ++slot.target.in_flight;
  ++in_flight_;
  service_.engine().touch(slot.client, service_.now(), job.id,
                          slot.target.endpoint.timeout + kTtrBeyond);
  held_.push_back(&slot);
  again_ = true;
}

void Pusher::body_read(queue::ClientId client, const Body& body) {
  const auto found = by_client_.find(client);
  if (found == by_client_.end() || found->second->state != Slot::State::kBody) return;
  Slot& slot = *found->second;
  slot.state = Slot::State::kHeld;
  if (body.bytes) {
    slot.body += *body.bytes;
    held_.push_back(&slot);
    return;
  }
  service_.report_store_failure(body.error);
  if (body.damaged) {
    slot.state = Slot::State::kEnded;
    slot.result = {.error = "the body cannot be read: " + body.error};
    finished_.push_back(&slot);
    return;
  }
  hold_off(slot.target, "the body cannot be read: " + body.error);
  give_back(slot);
}

// Reads the next piece of the body, or posts the body if it is complete.
void Pusher::go_on(Slot& slot) {
  if (slot.job.body_bytes > kMostBody) {
    slot.state = Slot::State::kEnded;
    slot.result = {};
    finished_.push_back(&slot);
    return;
  }
  if (slot.memory.bytes() == 0) {
    const std::size_t bytes = kSlotBytes + slot.job.body_bytes;
    if (bytes > service_.most_for_one()) {
      hold_off(slot.target, "there is no memory for an attempt");
      return give_back(slot);
    }
    slot.memory.set(bytes);
  }
  if (slot.body.size() == slot.job.body_bytes) return post(slot);
  const BodyName name{.id = slot.job.body_id,
                      .piece = static_cast<std::uint32_t>(slot.body.size() / queue::kBodyPiece)};
  slot.state = Slot::State::kBody;
  if (const auto body = body_at_hand(service_.store(), name)) {
    body_read(slot.client, *body);
  } else {
    service_.bodies().read(slot.client, name);
  }
}

void Pusher::post(Slot& slot) {
  Target& target = slot.target;
  const queue::Now now = service_.now();
  std::optional<queue::JobStats> stats;
  try {
    stats = service_.engine().job_stats(now, slot.job.id);
  } catch (const queue::StoreError& error) {
    service_.report_store_failure(error.what());
    hold_off(target, error.what());
  }
  if (!stats) return give_back(slot);
  slot.usual_delay.reset();
  if (stats->retry == queue::RetryPolicy())
    slot.usual_delay =
        queue::delay_after(kUsualRetry, slot.job.id, stats->record.extras->attempts + 1);
  PostRequest request =
      webhook_of(target.endpoint, *stats, std::exchange(slot.body, {}), now.utc_ns / kMs);
  slot.memory.set(kSlotBytes + request.body.size());
  slot.state = Slot::State::kPosting;
  slot.connection = connection_to(target.url);
  slot.posted_at = read_mono();
  slot.connection->post(std::move(request), milliseconds(target.endpoint.timeout),
                        [this, &slot](PostResult result) {
                          durations_.observe(std::chrono::duration<double>(result.took).count());
                          slot.state = Slot::State::kEnded;
                          slot.result = std::move(result);
                          finished_.push_back(&slot);
                        });
}

std::shared_ptr<PostConnection> Pusher::connection_to(const TargetUrl& url) {
  if (auto kept = kept_.take(url)) return kept;
  return std::make_shared<PostConnection>(io_, guard_, tls_, url);
}

bool Pusher::try_out(queue::ClientId client, std::string_view name,
                     const queue::Endpoint& endpoint) {
  if (trials_.size() >= kMostTrials) return false;
  const auto trial = trials_.insert(trials_.end(), connection_to(parse_target(endpoint.url)));
  (*trial)->post(trial_of(name, endpoint, service_.now().utc_ns / kMs),
                 milliseconds(endpoint.timeout), [this, client, trial](const PostResult& result) {
                   kept_.keep(std::move(*trial));
                   trials_.erase(trial);
                   tried_(client, result);
                 });
  return true;
}

// --- Turns.

void Pusher::work() {
  again_ = false;
  if (targets_.empty() && service_.engine().endpoint_changes() == changes_seen_) return;
  take_over_endpoints();
  const std::uint64_t until = read_mono() + kBudget;
  look_at_held(until);
  settle_finished(until);
  if (std::exchange(fill_, false)) {
    for (const auto& [name, target] : targets_) fill(*target, until);
    std::erase_if(targets_, [this](const auto& each) {
      const Target& target = *each.second;
      if (!target.removed || target.in_flight > 0) return false;
      kept_.close(target.url);
      return true;
    });
    set_timer();
  }
  if (again_) fill_ = true;
}

// At least one job goes on, and one attempt is settled, even if the time is over.
void Pusher::look_at_held(std::uint64_t until) {
  bool may_go_on = true;
  for (Slot* const slot : std::exchange(held_, {})) {
    if (slot->state != Slot::State::kHeld) continue;
    const Target& target = slot->target;
    const bool is_off = stopping_ || !target.is_on() || slot->version != target.version ||
                        read_mono() < target.rests_until;
    if (is_off) {
      give_back(*slot);
    } else if (slot->job.durable_at > durable_()) {
      held_.push_back(slot);
    } else if (may_go_on) {
      go_on(*slot);
      may_go_on = read_mono() < until;
    } else {
      held_.push_back(slot);
      again_ = true;
    }
  }
}

void Pusher::settle_finished(std::uint64_t until) {
  const auto can_settle = [this] {
    return !finished_.empty() && service_.store_has_room() && read_mono() >= retry_at_;
  };
  for (bool first = true; can_settle() && (first || read_mono() < until); first = false) {
    Slot* const slot = finished_.front();
    finished_.pop_front();
    try {
      settle(*slot);
    } catch (const queue::StoreError& error) {
      service_.report_store_failure(error.what());
      finished_.push_front(slot);
      retry_at_ = read_mono() + kShortRest * kMs;
    }
  }
  if (can_settle()) again_ = true;
}

// Wakes the loop when an endpoint has rested.
void Pusher::set_timer() {
  if (stopping_) return;
  const std::uint64_t now = read_mono();
  std::uint64_t next = UINT64_MAX;
  for (const auto& [name, target] : targets_)
    if (target->takes_at() > now) next = std::min(next, target->takes_at());
  if (next == UINT64_MAX) return;
  timer_.expires_after(std::chrono::nanoseconds(next - now + kMs));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) fill_ = true;
  });
}

void Pusher::stop() {
  stopping_ = true;
  fill_ = true;
  for (const auto& trial : trials_) trial->abort();
  trials_.clear();
  for (const auto& [name, target] : targets_)
    for (const auto& slot : target->slots)
      if (slot->state == Slot::State::kBody) give_back(*slot);
  timer_.expires_after(kGrace);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [name, target] : targets_) {
      for (const auto& slot : target->slots) {
        if (slot->state == Slot::State::kPosting) slot->connection->abort();
        if (slot->is_at_work()) give_back(*slot);
      }
    }
    held_.clear();
    finished_.clear();
  });
}

bool Pusher::is_idle() const {
  return in_flight_ == 0;
}

}  // namespace carillon::server::push
