# Compiles USER/main.cpp with each of COMPILERS and the flags that pkg-config gives for MODULES, as
# a user without CMake does, and runs it in a folder of its own below WORK_DIR.
file(GLOB found "${PREFIX}/lib/pkgconfig" "${PREFIX}/lib/*/pkgconfig")
list(JOIN found ":" path)
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${path}"
    pkg-config --cflags --libs ${MODULES}
  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
cmake_path(GET USER FILENAME user)
foreach(compiler IN LISTS COMPILERS)
  cmake_path(GET compiler FILENAME name)
  set(folder "${WORK_DIR}/${user}-${name}")
  file(REMOVE_RECURSE "${folder}")
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND "${compiler}" -std=c++20 -Wall -Wextra -Wconversion -Werror
      "${USER}/main.cpp" -o "${folder}/user" ${flags}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${folder}/user" WORKING_DIRECTORY "${folder}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
