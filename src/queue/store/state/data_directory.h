// A data directory: made if needed, and used by one process at a time.
//
//   const DataDirectory directory("carillon-data");      // locked until destroyed
//   if (directory.has_store()) ...
#pragma once

#include <optional>
#include <string>

#include "base/directory.h"
#include "base/file_descriptor.h"

namespace carillon::queue {

// What to do about a directory that is refused because its files are hurt: the end of a message.
inline std::string salvage_hint(const std::string& path) {
  return "; carillon check --data " + path + " --salvage NEW saves what is whole";
}

class DataDirectory {
 public:
  // Makes the directory if it is not there, durably and readable by its owner only, and locks it
  // until destroyed. Throws StoreError, with one line that names the directory, if the directory is
  // locked already, not writable, not a directory, or has other things in it.
  explicit DataDirectory(const std::string& path);
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  const std::string& path() const { return path_; }
  const base::Directory& files() const { return *files_; }
  // Returns true if there is a store in it.
  bool has_store() const;

  // Returns "data directory PATH WHAT", for errors. `what` may have files().held_path().
  std::string message(const std::string& what) const;

 private:
  void make() const;
  void refuse_other_things() const;
  void lock();

  void open();

  std::string path_;
  std::optional<base::Directory> files_;
  base::FileDescriptor lock_;
};

}  // namespace carillon::queue
