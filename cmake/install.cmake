# cmake --install: program, libraries, headers, a pkg-config file, stokerConfig.cmake for find_package, and ldconfig.
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
    install(TARGETS stoker stoker_watch RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  include(completions)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")

  # What libstoker.a needs, as it was found here; FFmpeg is loaded when the first video is opened, and not linked. These are
  # libraries and not modules of pkg-config (Requires.private), which would ask for the static libraries that libcurl was made of.
  set(private_names ${JPEG_LIBRARIES} ${PNG_LIBRARIES} ${YAML_LIBRARIES} ${ZLIB_LIBRARIES} ${JANSSON_LIBRARIES} ${ISAL_LIBRARIES} ${UTF8PROC_LIBRARIES} ${WEBP_LIBRARIES})
  set(private_folders ${JPEG_LIBRARY_DIRS} ${PNG_LIBRARY_DIRS} ${YAML_LIBRARY_DIRS} ${ZLIB_LIBRARY_DIRS} ${JANSSON_LIBRARY_DIRS}
                      ${ISAL_LIBRARY_DIRS} ${UTF8PROC_LIBRARY_DIRS} ${WEBP_LIBRARY_DIRS})
  if(CURL_FOUND)
    list(APPEND private_names ${CURL_LIBRARIES} ${CRYPTO_LIBRARIES})
    list(APPEND private_folders ${CURL_LIBRARY_DIRS} ${CRYPTO_LIBRARY_DIRS})
  endif()
  if(ONNX_FOUND)
    list(APPEND private_names ${PROTOBUF_C_LIBRARIES})
    list(APPEND private_folders ${PROTOBUF_C_LIBRARY_DIRS})
  endif()
  get_filename_component(dnnl_folder ${DNNL_LIBRARY} DIRECTORY)
  list(APPEND private_names dnnl m ${CMAKE_DL_LIBS})
  list(APPEND private_folders ${dnnl_folder})
  list(REMOVE_DUPLICATES private_names)
  list(REMOVE_DUPLICATES private_folders)
  list(REMOVE_ITEM private_folders ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
  set(private_flags -pthread ${OpenMP_C_FLAGS})

  set(pc_folders ${private_folders})
  list(TRANSFORM pc_folders PREPEND -L)
  set(pc_names ${private_names})
  list(TRANSFORM pc_names PREPEND -l)
  list(JOIN pc_folders " " pc_folders)
  list(JOIN pc_names " " pc_names)
  list(JOIN private_flags " " pc_flags)
  string(STRIP "${pc_folders} ${pc_names} ${pc_flags}" pc_libs_private)

  # Both find the prefix from where they lie, so that an installed tree may be moved.
  foreach(folder pkgconfig cmake/stoker)
    file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/${folder} ${CMAKE_INSTALL_PREFIX})
    string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
    if(folder STREQUAL pkgconfig)
      configure_file(${CMAKE_SOURCE_DIR}/cmake/stoker.pc.in ${CMAKE_BINARY_DIR}/stoker.pc @ONLY)
      install(FILES ${CMAKE_BINARY_DIR}/stoker.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/${folder})
    else()
      include(CMakePackageConfigHelpers)
      configure_file(${CMAKE_SOURCE_DIR}/cmake/stokerConfig.cmake.in ${CMAKE_BINARY_DIR}/stokerConfig.cmake @ONLY)
      write_basic_package_version_file(${CMAKE_BINARY_DIR}/stokerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
      install(FILES ${CMAKE_BINARY_DIR}/stokerConfig.cmake ${CMAKE_BINARY_DIR}/stokerConfigVersion.cmake
              DESTINATION ${CMAKE_INSTALL_LIBDIR}/${folder})
    endif()
  endforeach()

  # Programs find libstoker.so where the loader looks, once ldconfig has been run.
  configure_file(${CMAKE_SOURCE_DIR}/cmake/ldconfig.cmake.in ${CMAKE_BINARY_DIR}/ldconfig.cmake @ONLY)
  install(SCRIPT ${CMAKE_BINARY_DIR}/ldconfig.cmake)

  # All that is installed, without tests, examples and benchmarks.
  add_custom_target(products)
  foreach(target stoker_shared stoker_static stoker stoker_watch stoker_pages)
    if(TARGET ${target})
      add_dependencies(products ${target})
    endif()
  endforeach()
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
                 "libyaml ${YAML_VERSION}, zlib ${ZLIB_VERSION}, jansson ${JANSSON_VERSION}, ISA-L ${ISAL_VERSION}")
  set(present "")
  set(absent "")
  foreach(pair "OpenMP=${OpenMP_C_FOUND}" "libwebp=${WEBP_FOUND}" "libcurl=${CURL_FOUND}" "libutf8proc=${UTF8PROC_FOUND}" "libcrypto=${CRYPTO_FOUND}" "FFmpeg=${VIDEO_FOUND}" "ONNX (protobuf-c)=${ONNX_FOUND}" "cmocka (tests)=${CMOCKA_FOUND}" ${STOKER_OPTIONAL})
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
