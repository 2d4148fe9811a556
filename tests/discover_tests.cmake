# ctest reads this file when it starts. Adds a ctest for each gtest in `program`, with the name
# LAYER.Suite.Name, so that a hang or a crash fails one test only, and the number of tests is right.
# (gtest_discover_tests of CMake 3.25 does not handle typed suites whose types have names: it puts
# the whole C++ type into the test's name.)
if(NOT EXISTS "${program}")
  add_test("${layer}.tests_are_not_built" "${program}")
  return()
endif()

execute_process(COMMAND "${program}" --gtest_list_tests
  OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
# Remove the comments with the types and values of typed and parameterised tests.
string(REGEX REPLACE " *#[^\n]*" "" listing "${listing}")
string(REGEX REPLACE "\n" ";" listing "${listing}")
foreach(line IN LISTS listing)
  if(line MATCHES "^[^ ].*[.]$")
    set(suite "${line}")
  elseif(line MATCHES "^  (.+)$")
    set(test "${suite}${CMAKE_MATCH_1}")
    add_test("${layer}.${test}"
      "${program}" "--gtest_filter=${test}" --gtest_also_run_disabled_tests)
    set_tests_properties("${layer}.${test}" PROPERTIES
      LABELS layer TIMEOUT 300
      FAIL_REGULAR_EXPRESSION "0 tests from 0 test suites ran"
      SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
    # One of these takes 40 s of a processor. It begins early: nothing waits for it at the end.
    if(layer STREQUAL "simulator")
      set_tests_properties("${layer}.${test}" PROPERTIES COST 15)
    endif()
  endif()
endforeach()
