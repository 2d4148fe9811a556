// How Changes are written in the log: by themselves, with nothing of how a state keeps them.
//
//   change    := version:u8 field*
//   1 (bytes)    a job, which has the fields
//                  1 index key before the change; none: the job is new      2 id   3 tube
//                  4 value after the change; none: the job is deleted       5 body of a new job
//   2 (bytes)    a tube: 1 number, 2 value
//   3 (bytes)    the value of the watermarks
//
// Index keys are those of record_keys.h, values those of record_values.h. Fields that are not
// known are skipped: a newer version that writes more must write what an older one needs as well.
#pragma once

#include <string>
#include <string_view>

#include "carillon/queue/store.h"

namespace carillon::queue {

// Writes `changes` in place of what `bytes` held.
void encode_changes(const Changes& changes, std::string& bytes);

// The bodies are views into `bytes`. Of a record before the change, only what its index key says is
// known. Throws StoreError if the bytes are not as written above.
Changes decode_changes(std::string_view bytes);

}  // namespace carillon::queue
