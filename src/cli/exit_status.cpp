// Texts of system errors.

#include "cli/exit_status.h"

#include <system_error>

namespace carillon::cli {

std::string error_text(int error) {
  return lower_first(std::system_category().message(error));
}

std::string lower_first(std::string text) {
  const bool capitalized =
      text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z';
  if (capitalized) text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

}  // namespace carillon::cli
