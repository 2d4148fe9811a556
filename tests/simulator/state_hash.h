// Hashes that tell one state of a store from another.
//
//   std::uint64_t hash = hash_of(state);
//   hash -= hash_of(before); hash += hash_of(after);    // a record has changed: as hash_of() anew
//
// The hash of a state is the sum of those of its records and of the pieces of its bodies. So a
// change costs what it changes, and a large body is hashed when it is put and when it is deleted,
// and not with each change of its job.
#pragma once

#include <cstdint>
#include <string_view>

#include "carillon/queue/store.h"
#include "simulator/store_model.h"

namespace carillon::simulator {

std::uint64_t hash_of(const queue::JobRecord& record);
std::uint64_t hash_of(const queue::TubeRecord& tube);
std::uint64_t hash_of(const queue::KeyRecord& key);
std::uint64_t hash_of_story(queue::JobId id, const std::vector<queue::Attempt>& story);
std::uint64_t hash_of(const queue::ScheduleRecord& record);
std::uint64_t hash_of(const queue::Watermarks& marks);
std::uint64_t hash_of(const queue::UnfinishedBody& body);
std::uint64_t hash_of(const queue::BodyPiece& piece);
// The hash of all its pieces. It is the same whether the body is finished or not.
std::uint64_t hash_of_body(queue::JobId id, std::string_view body);
std::uint64_t hash_of(const queue::StoreModel& state);

}  // namespace carillon::simulator
