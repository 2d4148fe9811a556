// Protection against a start with descriptor 0, 1 or 2 closed (`carillon put x >&-`, or a daemon
// that closed them).
//
// Without it, the next file or socket that is opened would get the free number, and output for the
// user would go there: the body of a job would reach the server as commands, or log lines would be
// written into a file of the store.
#pragma once

namespace carillon::cli {

// Opens /dev/null at each closed descriptor of 0, 1 and 2, in the wrong direction: 0 for writing, 1
// and 2 for reading. So reading from 0 and writing to 1 and 2 still fail with EBADF, and no command
// mistakes a missing input for an empty one, or deletes a job whose body was not printed. Call it
// before anything else opens a file. Returns false if one stays closed because /dev/null cannot be
// opened.
bool occupy_standard_descriptors();

}  // namespace carillon::cli
