# Compiles all installed headers of the wheels and of the idle tracker with -fno-exceptions, by each
# of COMPILERS, in a program that uses them, and runs it.
file(GLOB_RECURSE headers RELATIVE "${PREFIX}/include"
  "${PREFIX}/include/carillon/wheel/*.h" "${PREFIX}/include/carillon/idle/*.h")
list(LENGTH headers count)
if(count LESS 20)
  message(FATAL_ERROR "found ${count} headers only: ${headers}")
endif()
list(TRANSFORM headers PREPEND "#include \"")
list(TRANSFORM headers APPEND "\"\n")
list(JOIN headers "" includes)
file(MAKE_DIRECTORY "${WORK_DIR}")
file(WRITE "${WORK_DIR}/all_headers.h" "${includes}")
foreach(compiler IN LISTS COMPILERS)
  foreach(user wheel_user idle_user)
    cmake_path(GET compiler FILENAME name)
    set(program "${WORK_DIR}/${user}-${name}")
    execute_process(COMMAND "${compiler}" -std=c++20 -fno-exceptions -Wall -Wextra -Wconversion
        -Wshadow -Wpedantic -Werror "-I${PREFIX}/include" -include "${WORK_DIR}/all_headers.h"
        "${CMAKE_CURRENT_LIST_DIR}/${user}/main.cpp" -o "${program}"
      COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${program}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
