# The two libraries and the program, out of the layers' objects in STOKER_OBJECTS; all three lie in the build folder.
add_library(stoker_shared SHARED)
add_library(stoker_static STATIC)
foreach(product stoker_shared stoker_static)
  # Objects are linked in, and what they link comes along.
  target_link_libraries(${product} PRIVATE ${STOKER_OBJECTS})
  target_include_directories(${product} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(
    ${product}
    PROPERTIES OUTPUT_NAME stoker
               LINKER_LANGUAGE C
               LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
               ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endforeach()
set_target_properties(stoker_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_options(stoker_shared PRIVATE LINKER:--as-needed)
if(NOT STOKER_SANITIZE)
  target_link_options(stoker_shared PRIVATE LINKER:--no-undefined)
endif()

# The shared library exports what src/symbols.txt lists, each name with its version, and nothing else.
set(symbols_map ${CMAKE_BINARY_DIR}/stoker.map)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/symbols.txt)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/symbols.txt symbol_lines REGEX "^ *[A-Za-z]")
set(map "")
set(end "")
foreach(line ${symbol_lines})
  if(line MATCHES "^ +(.*)$")
    string(APPEND map "    ${CMAKE_MATCH_1};\n")
  else()
    string(APPEND map "${end}${line} {\n  global:\n")
    # The first version hides all other names; each later one follows from the one before it.
    if(end)
      set(end "} ${version};\n")
    else()
      set(end "  local:\n    *;\n};\n")
    endif()
    set(version ${line})
  endif()
endforeach()
file(CONFIGURE OUTPUT ${symbols_map} CONTENT "${map}${end}")
target_link_options(stoker_shared PRIVATE LINKER:--version-script=${symbols_map})
set_property(TARGET stoker_shared APPEND PROPERTY LINK_DEPENDS ${symbols_map})

# The program sees what any user of the library sees: include/, and its own folder. The static library makes it start
# fast and run from anywhere.
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.c)
if(cli_sources)
  add_executable(stoker ${cli_sources})
  # Of src it may include watch and base alone (tools/layers.txt), which are no part of the library's interface.
  target_include_directories(stoker PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/cli ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(stoker PRIVATE _GNU_SOURCE STK_VERSION="${PROJECT_VERSION}")
  target_compile_options(stoker PRIVATE $<TARGET_PROPERTY:stoker_options,INTERFACE_COMPILE_OPTIONS>)
  target_link_options(stoker PRIVATE $<TARGET_PROPERTY:stoker_options,INTERFACE_LINK_OPTIONS> LINKER:--as-needed)
  # All of it, and its names to be found: plug-ins ask for functions that the program itself does not call.
  target_link_libraries(stoker PRIVATE stoker_static)
  target_link_options(stoker PRIVATE LINKER:--whole-archive,$<TARGET_FILE:stoker_static>,--no-whole-archive)
  set_target_properties(stoker PROPERTIES ENABLE_EXPORTS ON)
  set_target_properties(stoker PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()

# The doctor alone, out of sources that need libc and nothing else, to be copied to other machines.
set(STOKER_WATCH_SOURCES cli/watch/main.c cli/cmd_watch.c cli/args.c cli/text.c cli/bar.c cli/output.c cli/screen.c)
foreach(stem text plain_number error printable secret file new_file temporary memory memory_machine thread hash clock cgroup)
  list(APPEND STOKER_WATCH_SOURCES src/base/${stem}.c)
endforeach()
list(APPEND STOKER_WATCH_SOURCES src/events/exporter.c src/events/http_request.c)
file(GLOB watch_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src/watch/*.c)
list(APPEND STOKER_WATCH_SOURCES ${watch_sources})
list(TRANSFORM STOKER_WATCH_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/)
add_executable(stoker_watch ${STOKER_WATCH_SOURCES})
target_include_directories(stoker_watch PRIVATE ${CMAKE_SOURCE_DIR}/cli)
target_compile_definitions(stoker_watch PRIVATE STK_BUILD STK_VERSION="${PROJECT_VERSION}")
target_link_libraries(stoker_watch PRIVATE stoker_options Threads::Threads ${CMAKE_DL_LIBS} m)
set_target_properties(stoker_watch PROPERTIES OUTPUT_NAME stoker-watch RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
