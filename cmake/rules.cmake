# SPDX-License-Identifier: MIT

# The linker exports what the map says and binds everything else, and calls among exported functions too, inside the
# library. That is what hidden visibility gives, without an attribute on each function of a header that is not ours.
function(dock_exports target map)
    target_link_options(${target} PRIVATE -Wl,-Bsymbolic -Wl,--no-undefined)
    set(map ${CMAKE_SOURCE_DIR}/${map})
    if(EXISTS ${map})
        target_link_options(${target} PRIVATE -Wl,--version-script=${map})
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
    endif()
endfunction()

# dock_shared(TARGET libNAME SOVERSION MAP SOURCES...): lib/libNAME.so.SOVERSION and the link libNAME.so to it.
function(dock_shared target libname soversion map)
    add_library(${target} SHARED ${ARGN})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${libname} SOVERSION ${soversion})
    dock_exports(${target} ${map})
endfunction()

# A source may say in its first lines what it is linked with: `link: verbs`, `link: rdmacm`, `link: urma`, `link: shmem`,
# `link: core` or `link: none`.
function(dock_link_kind source default result)
    file(STRINGS ${source} lines REGEX "link: (verbs|rdmacm|urma|shmem|core|none)" LIMIT_INPUT 1000)
    if(lines MATCHES "link: (verbs|rdmacm|urma|shmem|core|none)")
        set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
    else()
        set(${result} ${default} PARENT_SCOPE)
    endif()
endfunction()

# dock_link(TARGET KIND SOURCE): a program sees the device's inside (core) or faces (verbs, rdmacm, urma, shmem), never
# both, since that would be two devices in one process.
function(dock_link target kind source)
    if(kind STREQUAL "core")
        target_link_libraries(${target} PRIVATE drydock_core)
    elseif(kind STREQUAL "verbs")
        target_link_libraries(${target} PRIVATE face_verbs drydock_so)
    elseif(kind STREQUAL "rdmacm")
        target_link_libraries(${target} PRIVATE face_rdmacm face_verbs drydock_so)
    elseif(kind STREQUAL "urma")
        target_link_libraries(${target} PRIVATE face_urma drydock_so)
    elseif(kind STREQUAL "shmem")
        target_link_libraries(${target} PRIVATE face_shmem)
    endif()
    target_link_libraries(${target} PRIVATE Threads::Threads m)
endfunction()

# dock_program(SOURCE DEFAULT_KIND EXAMPLES|BENCH|TEST): one source, one program. Examples and tests lie below the
# build directory as their source below the tree; benchmarks in bin/bench_NAME. Without a face no program of that face.
function(dock_program source default group)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE relative)
    cmake_path(GET relative PARENT_PATH directory)
    cmake_path(GET relative STEM name)
    if(directory STREQUAL "bench/verbs")
        set(default verbs)
    endif()
    dock_link_kind(${source} ${default} kind)
    string(REGEX REPLACE "[/.]" "-" target "${directory}/${name}")
    set(DOCK_TARGET "" PARENT_SCOPE)
    if(kind MATCHES "^(verbs|rdmacm|urma|shmem)$" AND NOT TARGET face_${kind})
        return()
    endif()

    add_executable(${target} ${source})
    if(group STREQUAL "BENCH")
        string(REGEX REPLACE "^bench_" "" name ${name})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME bench_${name})
        if(TARGET drydock_benchlib)
            target_link_libraries(${target} PRIVATE drydock_benchlib)
        endif()
    else()
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${directory})
    endif()
    if(group STREQUAL "TEST" AND kind STREQUAL "core" AND TARGET drydock_testlib)
        target_link_libraries(${target} PRIVATE drydock_testlib)
    endif()
    dock_link(${target} ${kind} ${source})
    if(group STREQUAL "EXAMPLES")
        list(APPEND DOCK_EXAMPLES ${target})
        set(DOCK_EXAMPLES ${DOCK_EXAMPLES} PARENT_SCOPE)
    endif()
    set(DOCK_TARGET ${target} PARENT_SCOPE)
endfunction()
