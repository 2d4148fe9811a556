// Texts that are shortened.
//
//   beginning("zwölf", 3)      // "zw": the third byte is the first half of the ö
//
// Thread safety: pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace carillon::base {

// Returns the first `most` bytes of the text, or fewer: no character of UTF-8 is cut in two.
std::string_view beginning(std::string_view text, std::size_t most);

}  // namespace carillon::base
