// The main function of the `carillon` program.

#include "cli/command_line.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/standard_descriptors.h"

int main(int argc, char** argv) {
  if (!carillon::cli::occupy_standard_descriptors()) {
    carillon::cli::remark(
        "carillon: a standard descriptor is closed, and /dev/null cannot be opened in its place");
    return carillon::cli::kFailure;
  }
  return carillon::cli::run_command_line(argc, argv);
}
