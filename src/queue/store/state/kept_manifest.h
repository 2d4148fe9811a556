// Keeps the MANIFEST that CURRENT names, even if RocksDB wants to delete it.
//
// RocksDB makes a new MANIFEST when it has failed to note something in the one before. If it fails
// again before CURRENT names the new one, as a table cannot be read, it may still take the new one
// for the current one, and delete the old one. The process goes on; but until RocksDB has made
// another one, no start can open the directory. Seen in 7.8 of Debian 12; mended in 9.6
// (facebook/rocksdb, pull requests 12865 and 12882).
//
// Thread safety: any thread.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace carillon::queue {

// Returns the file system `below` with this change: deleting such a MANIFEST succeeds and does
// nothing. RocksDB deletes it later, when the directory is opened at the latest.
std::shared_ptr<rocksdb::FileSystem> keep_manifest(
    const std::shared_ptr<rocksdb::FileSystem>& below);

}  // namespace carillon::queue
