# Answers find_package(carillon [COMPONENTS wheel idle timer cron asio queue]). The components are
# described in cmake/CarillonInstall.cmake of Carillon's sources.
include(CMakeFindDependencyMacro)

include("${CMAKE_CURRENT_LIST_DIR}/carillon-wheel.cmake")
set(carillon_wheel_FOUND TRUE)
set(carillon_idle_FOUND TRUE)  # headers alone, as the wheel

if("cron" IN_LIST carillon_FIND_COMPONENTS OR "asio" IN_LIST carillon_FIND_COMPONENTS)
  list(APPEND carillon_FIND_COMPONENTS timer)
endif()

if("timer" IN_LIST carillon_FIND_COMPONENTS
    AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/carillon-timer.cmake")
  find_dependency(Threads)
  include("${CMAKE_CURRENT_LIST_DIR}/carillon-timer.cmake")
  set(carillon_timer_FOUND TRUE)
endif()

if("cron" IN_LIST carillon_FIND_COMPONENTS
    AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/carillon-cron.cmake")
  find_dependency(date)
  include("${CMAKE_CURRENT_LIST_DIR}/carillon-cron.cmake")
  set(carillon_cron_FOUND TRUE)
endif()

if("asio" IN_LIST carillon_FIND_COMPONENTS
    AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/carillon-asio.cmake")
  find_dependency(Boost 1.81)
  include("${CMAKE_CURRENT_LIST_DIR}/carillon-asio.cmake")
  set(carillon_asio_FOUND TRUE)
endif()

if("queue" IN_LIST carillon_FIND_COMPONENTS
    AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/carillon-queue.cmake")
  find_dependency(Threads)
  find_dependency(RocksDB)
  include("${CMAKE_CURRENT_LIST_DIR}/carillon-queue.cmake")
  set(carillon_queue_FOUND TRUE)
endif()

foreach(component IN LISTS carillon_FIND_COMPONENTS)
  if(NOT carillon_${component}_FOUND AND carillon_FIND_REQUIRED_${component})
    set(carillon_FOUND FALSE)
    string(CONCAT carillon_NOT_FOUND_MESSAGE
      "Carillon, as installed here, has no component \"${component}\"; "
      "there can be: wheel idle timer cron asio queue")
  endif()
endforeach()
