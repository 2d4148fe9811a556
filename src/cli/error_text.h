// What the system says about an error, as a part of a sentence.
#pragma once

#include <string>

namespace carillon::cli {

/// The text of an errno value: "connection refused".
std::string error_text(int error);

/// "Killed" as "killed", but "I/O error" as it is.
std::string lower_first(std::string text);

}  // namespace carillon::cli
