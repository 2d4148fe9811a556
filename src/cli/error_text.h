// Texts of system errors, in a form that fits into a sentence.
#pragma once

#include <string>

namespace carillon::cli {

// Returns the text of an errno value: "connection refused".
std::string error_text(int error);

// Returns the text with its first letter in lower case, unless the second is upper case or no
// letter: "Killed" becomes "killed", "I/O error" stays.
std::string lower_first(std::string text);

}  // namespace carillon::cli
