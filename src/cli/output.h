// What commands write: results on standard output, remarks on standard error, and a body or its
// JSON exactly as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carillon::cli {

/// Writes all of it and flushes. Throws Failure if that is not possible: whoever deletes a job
/// after printing it has to know.
void write_out(std::string_view bytes);

/// The body byte for byte. On a terminal, and only there, a line end follows if the body has none,
/// so that the prompt does not hide it.
void write_body(std::string_view body);

/// One whole line on standard error, in one write, so that the lines of several threads and
/// processes do not mix.
void remark(std::string_view line);

/// All of standard input. Throws Failure; also as soon as there are more than `most` bytes.
std::string read_standard_input(std::size_t most);

}  // namespace carillon::cli
