# Completions for shells and man pages, printed by the program itself out of the tables that make --help.
if(TARGET stoker AND NOT CMAKE_CROSSCOMPILING)
  set(pages_dir ${CMAKE_BINARY_DIR}/pages)
  add_custom_command(
    OUTPUT ${pages_dir}/stamp
    COMMAND ${CMAKE_COMMAND} -DSTOKER=$<TARGET_FILE:stoker> -DOUT=${pages_dir} -P
            ${CMAKE_SOURCE_DIR}/cmake/make_pages.cmake
    DEPENDS stoker ${CMAKE_SOURCE_DIR}/cmake/make_pages.cmake
    COMMENT "Making man pages and completions"
    VERBATIM)
  add_custom_target(stoker_pages ALL DEPENDS ${pages_dir}/stamp)
  install(CODE "
    if(NOT EXISTS \"${pages_dir}/stamp\")
      message(FATAL_ERROR \"'${pages_dir}/stamp' is not there yet: run ./dev build, or cmake --build ${CMAKE_BINARY_DIR}, and install again\")
    endif()")
  install(DIRECTORY ${pages_dir}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(DIRECTORY ${pages_dir}/bash-completion ${pages_dir}/zsh ${pages_dir}/fish
          DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()
