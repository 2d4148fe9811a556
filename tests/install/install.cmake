# Installs BUILD_DIR into PREFIX. Empties PREFIX first, so that no test finds a file that is no
# longer installed.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${PREFIX}"
  COMMAND_ERROR_IS_FATAL ANY)

# The designs to compare with are not part of what is installed.
file(GLOB_RECURSE found "${PREFIX}/*scan_list.h" "${PREFIX}/*sorted_list.h"
  "${PREFIX}/*binary_heap.h" "${PREFIX}/*idle_scan.h" "${PREFIX}/*timer_per_packet.h")
if(found)
  message(FATAL_ERROR "installed, and not to be: ${found}")
endif()
if(NOT EXISTS "${PREFIX}/include/carillon/wheel/detail/advance_and_fire.h")
  message(FATAL_ERROR "a header that others include is not installed")
endif()
