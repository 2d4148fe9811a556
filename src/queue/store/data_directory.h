// A directory that one process at a time keeps its data in.
#pragma once

#include <string>

namespace carillon::queue {

class DataDirectory {
 public:
  // Makes the directory if it is not there, durably and for its owner's eyes only, and holds it
  // until destroyed. Throws StoreError, with one line that names it, when it cannot be had: it is
  // held already, not writable, not a directory, or has other things in it.
  explicit DataDirectory(const std::string& path);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  const std::string& path() const { return path_; }
  bool has_store() const;

  // "data directory PATH WHAT", for errors.
  std::string message(const std::string& what) const;

 private:
  void make() const;
  void refuse_other_things() const;
  void lock();

  std::string path_;
  int lock_ = -1;
};

}  // namespace carillon::queue
