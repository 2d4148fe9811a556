// KeepsNoBlocks: while it lives, the calling thread gives each timer block that it frees to the
// depot of the process, unless it has kept some before.
//
// A thread that keeps blocks gives them back when it ends. Within dlclose() it must not begin to
// keep some: the function that would give them back is about to go.
#pragma once

namespace carillon::detail {

class KeepsNoBlocks {
 public:
  KeepsNoBlocks() noexcept;
  KeepsNoBlocks(const KeepsNoBlocks&) = delete;
  KeepsNoBlocks& operator=(const KeepsNoBlocks&) = delete;
  ~KeepsNoBlocks();

 private:
  const bool changed_;
};

}  // namespace carillon::detail
