// Puts with a name of the client's own whose first answer is not out yet: they are still carried
// out, or what they have changed is not durable. Such a put that is sent again is refused, and does
// not wait for the first one.
//
//   auto claim = puts.claim("8e03978e", fingerprint, durable);   // none: the name is in flight
//   ... the engine puts the job ...
//   claim->answered(outcome.durable_at);        // without this the name is free when `claim` goes
//
// From then on the engine knows the name, and tells what became of the first put (BatchOrder).
//
// claim() also forgets the names whose answers are out by now. All is O(log n) of the names in
// flight, for each of those, too.
//
// Thread safety: none; it belongs to the thread that owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/store.h"
#include "server/memory_pool.h"

namespace carillon::server {

class PutsInFlight {
 public:
  class Claim;

  // The pool must outlive this.
  explicit PutsInFlight(MemoryPool& pool) : memory_(pool) {}

  // Returns none if the name is in flight: see fingerprint_of(). `durable`: the last change that
  // is.
  std::optional<Claim> claim(std::string_view name, std::string_view fingerprint,
                             queue::Sequence durable);
  // Returns that of the put which has the name. REQUIRES: claim() has just returned none.
  std::string_view fingerprint_of(std::string_view name) const;

 private:
  struct Put {
    std::string name;
    std::string fingerprint;
    queue::Sequence durable_at = 0;  // 0: nothing waits for a change
  };
  using Puts = std::list<Put>;

  void end(Puts::iterator put) noexcept;
  void forget(Puts& of, Puts::iterator put) noexcept;

  MemoryPool::Share memory_;
  Puts carried_out_;  // they have claims
  Puts answered_;     // in the order of their changes
  std::map<std::string_view, Puts::iterator> by_name_;
};

// A put that is being carried out. It must not outlive the PutsInFlight.
class PutsInFlight::Claim {
 public:
  Claim(PutsInFlight& puts, Puts::iterator put) : puts_(&puts), put_(put) {}
  Claim(Claim&& other) noexcept : puts_(std::exchange(other.puts_, nullptr)), put_(other.put_) {}
  Claim& operator=(Claim&&) = delete;
  ~Claim() {
    if (puts_ != nullptr) puts_->end(put_);
  }

  // The put has an answer, which leaves when this change is durable. The name is in flight until
  // then, also without the claim.
  void answered(queue::Sequence durable_at) { put_->durable_at = durable_at; }

 private:
  PutsInFlight* puts_;  // null: another claim has taken over
  Puts::iterator put_;
};

}  // namespace carillon::server
