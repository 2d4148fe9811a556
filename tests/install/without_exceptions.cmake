# Compiles all installed headers of the wheels and of the idle tracker with -fno-exceptions, by each
# of COMPILERS, in programs that use them, and runs these. After a mistake a program must print what
# would be thrown, and end.
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

function(compile source program)
  execute_process(COMMAND "${compiler}" -std=c++20 -fno-exceptions -Wall -Wextra -Wconversion
      -Wshadow -Wpedantic -Werror "-I${PREFIX}/include" -include "${WORK_DIR}/all_headers.h"
      "${CMAKE_CURRENT_LIST_DIR}/${source}" -o "${program}"
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(compiler IN LISTS COMPILERS)
  cmake_path(GET compiler FILENAME name)
  foreach(user wheel_user idle_user)
    set(program "${WORK_DIR}/${user}-${name}")
    compile(${user}/main.cpp "${program}")
    execute_process(COMMAND "${program}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  set(program "${WORK_DIR}/misuse-${name}")
  compile(misuse_without_exceptions.cpp "${program}")
  foreach(what wheel idle)
    execute_process(COMMAND "${program}" ${what} RESULT_VARIABLE result
      OUTPUT_VARIABLE went_on ERROR_VARIABLE said)
    if(result EQUAL 0 OR went_on OR NOT said MATCHES "^carillon: advance\\(99\\) would go back")
      message(FATAL_ERROR "${name}, ${what}: a mistake gave ${result}: ${went_on}${said}")
    endif()
  endforeach()
endforeach()
