// The `carillon` program.

#include "cli/run.h"

int main(int argc, char** argv) {
  return carillon::cli::run(argc, argv);
}
