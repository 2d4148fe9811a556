# Installs BUILD_DIR into PREFIX, which is emptied first: a file that is no longer installed must
# not be found by chance.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
