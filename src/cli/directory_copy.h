// A durable copy of the files in a directory, which appears under its name when it is whole, and
// not before.
//
//   DirectoryCopy copy("/backups/monday");          // throws if that exists
//   copy.begin("/var/lib/carillon/checkpoint-1");   // makes /backups/monday.partial
//   copy.run([&](std::uint64_t done) { ... });      // `done` of copy.bytes() bytes are on the disk
//   copy.finish();                                  // now it is /backups/monday
//
// If it is destroyed before finish(), it removes what it has copied. If the process is killed,
// NAME.partial is left, and must be removed by hand: the next copy to the same name refuses it,
// because another process may be writing there. A data directory is copied such that `carillon
// serve` refuses NAME.partial while a file is missing: CURRENT, by which it knows a data directory,
// comes last, and the log comes first.
//
// The copy is brought to the disk every 4 MiB. So `done` is the truth, a full disk is noticed at
// once, and the server, whose disk it may be, never waits behind gigabytes of written pages.
//
// Thread safety: none. Every method throws Failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace carillon::cli {

class DirectoryCopy {
 public:
  // `to` is the copy's name. Nothing is made yet.
  explicit DirectoryCopy(std::string to);
  ~DirectoryCopy();
  DirectoryCopy(const DirectoryCopy&) = delete;
  DirectoryCopy& operator=(const DirectoryCopy&) = delete;

  // Lists the files of `from`, which must not change any more, and makes NAME.partial. Refuses to
  // begin if the disk has too little room.
  void begin(const std::string& from);
  // Copies the files, durably. Calls `progress` at least every 4 MiB with the bytes copied so far.
  // What `progress` throws ends the copying.
  void run(const std::function<void(std::uint64_t done)>& progress);
  // Gives the copy its name, durably.
  void finish();

  // Gives the copy the name NAME.damaged instead, durably. Returns false if that exists.
  bool finish_as_damaged();

  const std::string& partial() const { return partial_; }
  const std::string& name() const { return to_; }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t files() const { return files_.size(); }

 private:
  void rename_to(const std::string& name);
  struct File {
    std::string name;
    std::uint64_t size = 0;
  };

  void list(const std::string& from);
  void refuse_if_too_large() const;
  void copy(const File& file, const std::function<void(std::uint64_t done)>& progress);

  std::string from_;
  std::string to_;
  std::string partial_;
  bool made_ = false;  // partial_ is there, and is ours
  std::vector<File> files_;
  std::uint64_t bytes_ = 0;
  std::uint64_t done_ = 0;
  std::vector<char> buffer_;
};

}  // namespace carillon::cli
