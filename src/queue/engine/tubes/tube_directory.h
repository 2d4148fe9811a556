// The tubes of an engine, by name and by number, and the lanes of their groups.
//
//   TubeDirectory tubes;
//   Tube& mail = tubes.add(std::make_unique<Tube>(record));
//   tubes.find("mail") == &mail;
//   tubes.find(mail, "customer-7");       // nullptr: no job of such a group exists
//   tubes.remove(mail);
//
// O(1). Memory of a tube: about 65 bytes beside the Tube. Thread safety: none.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "carillon/queue/detail/split_table.h"
#include "carillon/require.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class TubeDirectory {
 public:
  // These return nullptr if there is no such tube.
  Tube* find(std::string_view name) const {
    Tube* const* found = by_name_.find(name);
    return found == nullptr ? nullptr : *found;
  }
  Tube* find(std::uint32_t number) const {
    const std::unique_ptr<Tube>* found = by_number_.find(number);
    return found == nullptr ? nullptr : found->get();
  }

  // The lane of the tube's group.
  Tube* find(const Tube& head, std::string_view group) const {
    Tube* const* found = by_group_.find({head.record.number, group});
    return found == nullptr ? nullptr : *found;
  }

  // REQUIRES: no tube has its name or number. When it throws, nothing has changed.
  Tube& add(std::unique_ptr<Tube> added) {
    Tube& tube = *added;
    CARILLON_REQUIRE_DEBUG(find(tube.record.number) == nullptr, tube.record.number);
    CARILLON_REQUIRE_DEBUG(tube.record.head != 0 || find(tube.record.name) == nullptr,
                           tube.record.name);
    if (tube.record.head != 0) {
      by_group_.try_emplace(group_of(tube), &tube);
    } else {
      by_name_.try_emplace(tube.record.name, &tube);
    }
    try {
      by_number_.try_emplace(tube.record.number, std::move(added));
    } catch (...) {
      erase_name(tube);
      throw;
    }
    return tube;
  }

  // Destroys the tube.
  void remove(Tube& tube) {
    erase_name(tube);
    by_number_.erase(tube.record.number);
  }

 private:
  struct Group {
    std::uint32_t head;
    std::string_view name;

    friend bool operator==(const Group&, const Group&) = default;
    friend std::size_t hash_value(const Group& group) {
      std::size_t hash = group.head;
      boost::hash_combine(hash, group.name);
      return hash;
    }
  };
  static Group group_of(const Tube& lane) { return {lane.record.head, lane.record.name}; }
  void erase_name(const Tube& tube) {
    if (tube.record.head != 0) {
      by_group_.erase(group_of(tube));
    } else {
      by_name_.erase(tube.record.name);
    }
  }

  template <class Key, class Value>
  using Table = detail::SplitTable<boost::unordered_flat_map<Key, Value>>;

  Table<std::uint32_t, std::unique_ptr<Tube>> by_number_;
  Table<std::string_view, Tube*> by_name_;  // the names are those in the records
  Table<Group, Tube*> by_group_;
};

}  // namespace carillon::queue
