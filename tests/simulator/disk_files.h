// What the simulated disk is made of: its files, their names, and what is durable of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulator/disk.h"

namespace carillon::simulator {

inline std::size_t pages_of(std::size_t bytes) {
  return (bytes + Disk::kPage - 1) / Disk::kPage;
}

// A change of the names in a directory: `name` stands for `file`, or for nothing any more.
struct Disk::Change {
  std::string name;
  FilePointer file = nullptr;
  std::string renamed_from = {};

  void apply(Names& names) const {
    if (!renamed_from.empty()) names.erase(renamed_from);
    if (file) {
      names[name] = file;
    } else {
      names.erase(name);
    }
  }
};

struct Disk::File {
  File(std::uint64_t number, bool directory) : inode(number), is_directory(directory) {}

  void tell(struct stat& to) const {
    to = {};
    to.st_ino = inode;
    to.st_mode = is_directory ? S_IFDIR | 0700 : S_IFREG | 0644;
    to.st_nlink = 1;
    to.st_size = static_cast<off_t>(bytes.size());
    to.st_blksize = kPage;
    to.st_blocks = static_cast<blkcnt_t>(pages_of(bytes.size()) * (kPage / kSector));
  }

  const std::uint64_t inode;
  const bool is_directory;
  int links = 0;       // names
  int locked_by = -1;  // a descriptor

  // As every process sees them.
  std::vector<char> bytes;
  Names names;

  // For each page that was changed since it was durable: its durable content.
  std::map<std::size_t, std::unique_ptr<Page>> unsynced;
  // The same for pages that a failed sync has not written.
  std::map<std::size_t, std::unique_ptr<Page>> never_written;
  std::size_t durable_size = 0;
  Names durable_names;
  std::vector<Change> changes;  // from durable_names to names
};

struct Disk::Descriptor {
  FilePointer file;
  int flags = 0;
  off_t position = 0;
};

// Where a path leads.
struct Disk::Place {
  FilePointer file = nullptr;  // none if there is no such file
  FilePointer in = nullptr;    // the directory that has, or may have, the file
  std::string name = {};       // and its name there
  int error = 0;               // if the path does not lead anywhere
};

}  // namespace carillon::simulator
