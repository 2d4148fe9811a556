# Installs BUILD_DIR into PREFIX. Empties PREFIX first, so that no test finds a file that is no
# longer installed.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${PREFIX}"
  COMMAND_ERROR_IS_FATAL ANY)
