# cmake --install: program, libraries, headers, pkg-config file.
if(TARGET stoker_shared)
  # `cmake --install` builds nothing, and a part of the products may be there.
  install(CODE "
    foreach(file \"$<TARGET_FILE:stoker_shared>\" \"$<TARGET_FILE:stoker_static>\")
      if(NOT EXISTS \"\${file}\")
        message(FATAL_ERROR \"'\${file}' is not built yet: run ./dev build, or cmake --build ${CMAKE_BINARY_DIR}, and install again\")
      endif()
    endforeach()")
  install(TARGETS stoker_shared stoker_static LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                              ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET stoker)
    install(TARGETS stoker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  include(completions)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")

  # The prefix is found from where the file lies, so that an installed tree may be moved.
  file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  get_filename_component(pc_dnnl_dir ${DNNL_LIBRARY} DIRECTORY)
  set(pc_private_libs "-L${pc_dnnl_dir} -ldnnl -lm -pthread ${OpenMP_C_FLAGS}")
  configure_file(${CMAKE_SOURCE_DIR}/cmake/stoker.pc.in ${CMAKE_BINARY_DIR}/stoker.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/stoker.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# What was found, for people and for bug reports. Optional parts append "NAME (what for)=FOUND"
# to STOKER_OPTIONAL.
function(stoker_summary)
  set(dnnl_version "")
  find_file(dnnl_version_header oneapi/dnnl/dnnl_version.h HINTS ${DNNL_INCLUDE_DIR} NO_CACHE)
  if(dnnl_version_header)
    file(READ ${dnnl_version_header} text)
    string(REGEX MATCH "DNNL_VERSION_MAJOR ([0-9]+)" _ "${text}")
    set(dnnl_version ${CMAKE_MATCH_1})
    string(REGEX MATCH "DNNL_VERSION_MINOR ([0-9]+)" _ "${text}")
    string(APPEND dnnl_version .${CMAKE_MATCH_1})
  endif()
  set(sanitizers ${STOKER_SANITIZE})
  if(NOT sanitizers)
    set(sanitizers none)
  endif()
  message(STATUS "Stoker ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
                 ", sanitizers: ${sanitizers}")
  message(STATUS "Stoker needs:    oneDNN ${dnnl_version}, libjpeg ${JPEG_VERSION}, libpng ${PNG_VERSION}, "
                 "libyaml ${YAML_VERSION}, zlib ${ZLIB_VERSION}, jansson ${JANSSON_VERSION}")
  set(present "")
  set(absent "")
  foreach(pair "OpenMP=${OpenMP_C_FOUND}" "libcurl=${CURL_FOUND}" "libutf8proc=${UTF8PROC_FOUND}" "libcrypto=${CRYPTO_FOUND}" "FFmpeg=${VIDEO_FOUND}" "ONNX (protobuf-c)=${ONNX_FOUND}" "cmocka (tests)=${CMOCKA_FOUND}" ${STOKER_OPTIONAL})
    string(REGEX MATCH "^(.*)=(.*)$" _ "${pair}")
    set(name "${CMAKE_MATCH_1}")
    if(CMAKE_MATCH_2)
      list(APPEND present "${name}")
    else()
      list(APPEND absent "${name}")
    endif()
  endforeach()
  list(JOIN present ", " present)
  list(JOIN absent ", " absent)
  message(STATUS "Stoker optional: present: ${present}; absent: ${absent}")
endfunction()
stoker_summary()
