// Keeps the MANIFEST that CURRENT names, also where RocksDB would delete it.
//
// RocksDB writes a new MANIFEST when something went wrong with the one before. If it fails before
// it has made the new one (a table cannot be read, the disk is full), it takes the new one for the
// current one all the same, and deletes the old one. CURRENT names the old one still. The process
// goes on; but no later start can open the directory. Seen in 7.8 of Debian 12, mended for its
// later versions in 2023 and 2024 (facebook/rocksdb, pull requests 12030 and 12865).
//
// Thread safety: any thread.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace carillon::queue {

// Returns the file system `below`, but for this. A MANIFEST that was to be deleted and is kept goes
// when the directory is opened the next time.
std::shared_ptr<rocksdb::FileSystem> keep_manifest(std::shared_ptr<rocksdb::FileSystem> below);

}  // namespace carillon::queue
