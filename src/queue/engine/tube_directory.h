// The tubes of an engine, by name and by number.
//
//   TubeDirectory tubes;
//   Tube& mail = tubes.add(std::make_unique<Tube>(record));
//   tubes.find("mail") == &mail;
//   tubes.remove(mail);
//
// A hash table that grows moves all that it holds, at once: with a million tubes, clients would
// wait for 200 ms. So there are 256 small tables in the place of a large one, and a tube is in the
// table that its hash names. To grow one of them takes a 256th of the time.
//
// O(1). Memory of a tube: about 25 bytes beside the Tube. Thread safety: none.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "queue/engine/tube.h"

namespace carillon::queue {

class TubeDirectory {
 public:
  // These return nullptr if there is no such tube.
  Tube* find(std::string_view name) const { return names_.find(name); }
  Tube* find(std::uint32_t number) const { return numbers_.find(number); }

  // Makes room for so many tubes, so that adding them grows no table.
  void reserve(std::size_t tubes) {
    names_.reserve(tubes);
    numbers_.reserve(tubes);
  }

  // REQUIRES: no tube has its name or number. When it throws, nothing has changed.
  Tube& add(std::unique_ptr<Tube> tube) {
    numbers_.add(*tube);
    try {
      names_.add(*tube);
    } catch (...) {
      numbers_.remove(*tube);
      throw;
    }
    return *tube.release();
  }

  // Destroys the tube.
  void remove(Tube& tube) {
    numbers_.remove(tube);
    names_.remove(tube);
    const std::unique_ptr<Tube> destroyed(&tube);
  }

  TubeDirectory() = default;
  TubeDirectory(const TubeDirectory&) = delete;
  TubeDirectory& operator=(const TubeDirectory&) = delete;
  ~TubeDirectory() {
    numbers_.for_each([](Tube* tube) { const std::unique_ptr<Tube> destroyed(tube); });
  }

 private:
  struct Name {
    using Key = std::string_view;
    static Key of(const Tube& tube) { return tube.record.name; }
  };
  struct Number {
    using Key = std::uint32_t;
    static Key of(const Tube& tube) { return tube.record.number; }
  };

  template <class By>
  class Table {
   public:
    using Key = typename By::Key;

    Tube* find(Key key) const {
      const Part& part = parts_[part_of(key)];
      const auto found = part.find(key);
      return found == part.end() ? nullptr : *found;
    }
    void add(Tube& tube) { parts_[part_of(By::of(tube))].insert(&tube); }
    void remove(Tube& tube) { parts_[part_of(By::of(tube))].erase(&tube); }
    void reserve(std::size_t tubes) {
      // The parts differ a little in size.
      for (Part& part : parts_) part.reserve(tubes / kParts + tubes / kParts / 8);
    }
    template <class Call>
    void for_each(Call call) const {
      for (const Part& part : parts_) {
        for (Tube* tube : part) call(tube);
      }
    }

   private:
    struct Hash {
      using is_transparent = void;
      std::size_t operator()(Key key) const { return std::hash<Key>()(key); }
      std::size_t operator()(const Tube* tube) const { return (*this)(By::of(*tube)); }
    };
    struct Equal {
      using is_transparent = void;
      bool operator()(const Tube* a, const Tube* b) const { return a == b; }
      bool operator()(Key key, const Tube* tube) const { return key == By::of(*tube); }
      bool operator()(const Tube* tube, Key key) const { return key == By::of(*tube); }
    };
    using Part = boost::unordered_flat_set<Tube*, Hash, Equal>;

    static std::size_t part_of(Key key) {
      // The multiplication spreads numbers over its upper bits, which name the part.
      return (Hash()(key) * 0x9E37'79B9'7F4A'7C15) >> 56;
    }

    static constexpr std::size_t kParts = 256;
    std::array<Part, kParts> parts_;
  };

  Table<Name> names_;
  Table<Number> numbers_;
};

}  // namespace carillon::queue
