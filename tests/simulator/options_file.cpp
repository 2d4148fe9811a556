// Spares each start of the simulated server what RocksDB does with its options: it writes them to a
// file, and then parses that file to verify what it has just written, a tenth of a world's time.
//
// The file is written and synced as ever, and nothing of Carillon reads it. This program's own
// definition comes before that of the library, which is a shared one, as in system_calls.cpp. If a
// RocksDB does not call the function in this way, it does no harm.

#include <rocksdb/convenience.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <string>
#include <vector>

namespace rocksdb {

class FileSystem;

// RocksDB declares it in a header of its own, options/options_parser.h.
class RocksDBOptionsParser {
 public:
  static Status VerifyRocksDBOptionsFromFile(const ConfigOptions& config, const DBOptions& database,
                                             const std::vector<std::string>& names,
                                             const std::vector<ColumnFamilyOptions>& families,
                                             const std::string& file, FileSystem* system);
};

Status RocksDBOptionsParser::VerifyRocksDBOptionsFromFile(
    const ConfigOptions& /*config*/, const DBOptions& /*database*/,
    const std::vector<std::string>& /*names*/, const std::vector<ColumnFamilyOptions>& /*families*/,
    const std::string& /*file*/, FileSystem* /*system*/) {
  return Status::OK();
}

}  // namespace rocksdb
