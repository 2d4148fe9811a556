// Scripts that let a shell complete the command line: `carillon completion bash`, `zsh` or `fish`.
// They are made from the commands and options as the parser has them, so none can be missing.
#pragma once

#include <string>
#include <string_view>

namespace carillon::cli {

// Returns the script, or throws UsageError if there is none for this shell.
std::string completion_script(std::string_view shell);

}  // namespace carillon::cli
