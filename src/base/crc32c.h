// CRC-32C (Castagnoli; RFC 3720, appendix B.4), the checksum of records on disk.
//
//   std::uint32_t sum = crc32c(0, head);
//   sum = crc32c(sum, body);                  // the checksum of head and body together
//
// The queue's log protects its records with it (src/queue/store/log/log_segment.h).
//
// Thread safety: any thread may call these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carillon::base {

// Returns the checksum of all earlier bytes followed by `bytes`. `so_far` is the checksum of the
// earlier bytes; 0 if there are no earlier bytes. Uses the processor's own instruction where it has
// one (x86-64 with SSE 4.2), else tables: about 2 bytes per ns by tables, several times as many by
// instruction.
std::uint32_t crc32c(std::uint32_t so_far, std::string_view bytes);

// The same by tables on every processor: for tests.
std::uint32_t crc32c_by_tables(std::uint32_t so_far, std::string_view bytes);

}  // namespace carillon::base
