// Descriptors 0, 1 and 2, which a program may be started without (`carillon put x >&-`, or a daemon
// that closed them).
//
// The next file or socket that is opened would get the free number, and what is meant for the user
// would go there: the body of a job to the server, as commands; lines of the log into a file of the
// store.
#pragma once

namespace carillon::cli {

/// Opens those of 0, 1 and 2 that are closed on /dev/null, the wrong way round: to read from 0 and
/// to write to 1 and 2 fails with EBADF as it would if they were closed, so that nobody takes a
/// missing input for an empty one, or deletes a job whose body went nowhere. To be called before
/// anything else opens a file. False: one stayed closed, as there is no /dev/null.
bool occupy_standard_descriptors();

}  // namespace carillon::cli
