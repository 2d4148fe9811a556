// Bytes that clients have chosen, as text for people: in the log and on terminals.
//
//   visible("a\x1b[2J") == "a\\x1B[2J"      visible("\xC2\x9B") == "\\u009B"
//
// A terminal obeys control characters: they move its cursor, clear it, set its title, or type for
// its user. Bidi controls show a text in another order than it has. With an invisible character two
// names look like one. All are escaped, and so are bytes that are not UTF-8. In serialized JSON
// that is escaping as JSON has it: the JSON means the same before and after. Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

namespace carillon::server {

// Returns the text with "\x0A" for each control character of ASCII that is not in `kept`, and for
// each byte that is not UTF-8, and with "\u202E" for DEL, the controls U+0080 to U+009F, U+2028 and
// U+2029, the bidi controls, and the invisible characters (those that Unicode calls Bidi_Control or
// Default_Ignorable_Code_Point, but for the variation selectors U+FE00 to U+FE0F).
std::string visible(std::string_view text, std::string_view kept = {});

// What lines of text are made of beside what is printed.
inline constexpr std::string_view kLineFormat = "\n\t";

}  // namespace carillon::server
