// NewestFile: the file `newest.data`, which names the segment of a local log that was begun last.
//
//   NewestFile::make(directory, identity, {.life = 7, .serial = 1, .number = 1});
//   ...
//   const NewestFile::Segment newest = NewestFile::read(directory, identity);
//   ...
//   const NewestFile file(directory, identity);
//   file.write({.life = 8, .serial = 2, .number = 2});    // durable when it returns
//
// A log that has lost its newest segment looks like a whole log that ends earlier. A log whose
// newest segment comes from a copy of the directory looks whole, too, if both have as many
// segments. This file tells these cases from the log that was written. Its name begins differently
// from those of the segments, so it stays when somebody removes or copies all segments.
//
// A segment's header is made durable first, then this file, and then the segment's first record. So
// the segment that is named is there, and one that is newer has no record.
//
// The file has one block: magic:16 version:u32 zero:u32 identity:u64 life:u64 serial:u64 number:u64
// zero:u32 crc32c:u32. They lie in one sector, so a crash leaves the old ones or the new ones.
#pragma once

#include <cstdint>
#include <string>

#include "base/directory.h"
#include "base/file_descriptor.h"

namespace carillon::queue {

class NewestFile {
 public:
  static constexpr const char* kName = "newest.data";

  struct Segment {
    std::uint64_t life = 0;    // as LogUse has it
    std::uint64_t serial = 0;  // as LogUse has it
    std::uint64_t number = 0;  // in the segment's name
  };

  // Makes the file, durably, in the place of one that is there. Throws StoreError. A crash may
  // leave a file that read() refuses.
  static void make(const base::Directory& directory, std::uint64_t identity,
                   const Segment& segment);

  // What fails its checksum is read once more. Throws StoreError if the file is gone, cannot be
  // read, is damaged, belongs to another log, or was made by another version.
  static Segment read(const base::Directory& directory, std::uint64_t identity);

  // Opens the file to write it, and throws StoreError if it cannot.
  NewestFile(const base::Directory& directory, std::uint64_t identity);

  // Durable when it returns. Throws StoreError; what the file has is unknown then.
  void write(const Segment& segment) const;

 private:
  NewestFile(const base::Directory& directory, std::uint64_t identity, int flags);
  void write_block(const char* block) const;

  std::string path_;  // for messages
  std::uint64_t identity_;
  base::FileDescriptor file_;
};

}  // namespace carillon::queue
