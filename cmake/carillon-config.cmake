# find_package(carillon [COMPONENTS wheel timer queue]): see cmake/CarillonInstall.cmake in Carillon's sources.
include(CMakeFindDependencyMacro)

include("${CMAKE_CURRENT_LIST_DIR}/carillon-wheel.cmake")
set(carillon_wheel_FOUND TRUE)

if("timer" IN_LIST carillon_FIND_COMPONENTS AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/carillon-timer.cmake")
  find_dependency(Threads)
  include("${CMAKE_CURRENT_LIST_DIR}/carillon-timer.cmake")
  set(carillon_timer_FOUND TRUE)
endif()

if("queue" IN_LIST carillon_FIND_COMPONENTS AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/carillon-queue.cmake")
  find_dependency(Threads)
  find_dependency(RocksDB)
  include("${CMAKE_CURRENT_LIST_DIR}/carillon-queue.cmake")
  set(carillon_queue_FOUND TRUE)
endif()

foreach(component IN LISTS carillon_FIND_COMPONENTS)
  if(NOT carillon_${component}_FOUND AND carillon_FIND_REQUIRED_${component})
    set(carillon_FOUND FALSE)
    set(carillon_NOT_FOUND_MESSAGE "Carillon, as installed here, has no component \"${component}\"; there can be: wheel timer queue")
  endif()
endforeach()
