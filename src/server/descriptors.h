// How the descriptors that the process may have are shared out, between connections, pushes, the
// store's files and the rest, so that nothing runs out of them: a connection too many is refused,
// and a put always has the file that it needs.
//
//   const DescriptorShares shares = share_descriptors(raise_descriptor_limit(), 10'000, true);
#pragma once

#include <cstddef>

namespace carillon::server {

struct DescriptorShares {
  std::size_t connections = 0;
  std::size_t open_files = 0;  // for the store; DiskStoreOptions::max_open_files
  std::size_t pushes = 0;      // push::PushOptions::sockets
};

// Raises the process's limit of descriptors (`ulimit -n`) as far as allowed, and returns it.
std::size_t raise_descriptor_limit();

// Shares out `limit` descriptors; connections get at most `connections`. Throws StartError if the
// limit is too small to work with.
DescriptorShares share_descriptors(std::size_t limit, std::size_t connections, bool on_disk);

}  // namespace carillon::server
