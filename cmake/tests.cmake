# SPDX-License-Identifier: MIT
# The directory below tests/ is the label. tests/LABEL/**/NAME_test.c becomes a program and a test of its own,
# NAME_prog.c a program that tests start, *.sh and *_test.py a test. Directories lib/ hold helpers.

file(GLOB testlib_sources CONFIGURE_DEPENDS tests/lib/*.c)
if(testlib_sources)
    add_library(drydock_testlib STATIC ${testlib_sources})
    target_include_directories(drydock_testlib PUBLIC tests ${CMOCKA_INCLUDE})
    target_link_libraries(drydock_testlib PUBLIC ${CMOCKA_LIBRARY})
endif()
file(GLOB facelib_sources CONFIGURE_DEPENDS tests/face/lib/*.c)
if(facelib_sources AND TARGET face_verbs)
    add_library(drydock_facelib STATIC ${facelib_sources})
    target_include_directories(drydock_facelib PUBLIC tests ${CMOCKA_INCLUDE})
endif()

# Labels whose programs see the verbs face from outside.
set(DOCK_VERBS_LABELS face abi conform)

# Labels that may share the machine with another test; the others measure time or fill both cores.
set(DOCK_PARALLEL_LABELS unit abi)

function(dock_add_test name label command)
    # scripts/run-one keeps the time (a first-lines `timeout: N`), so that a test run by hand has the same limit.
    add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/scripts/run-one ${command})
    set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 86400
        ENVIRONMENT DRYDOCK_BUILD=${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    if(NOT label IN_LIST DOCK_PARALLEL_LABELS)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/*_test.c tests/*_prog.c)
foreach(source IN LISTS test_sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/tests OUTPUT_VARIABLE relative)
    string(REGEX REPLACE "/.*" "" label ${relative})
    set(kind core)
    if(relative MATCHES "^(face|examples)/urma/")
        set(kind urma)
    elseif(label IN_LIST DOCK_VERBS_LABELS)
        set(kind verbs)
    endif()
    dock_program(${source} ${kind} TEST)
    if(NOT DOCK_TARGET)
        continue()
    endif()
    target_include_directories(${DOCK_TARGET} PRIVATE tests tests/lib ${CMOCKA_INCLUDE})
    target_link_libraries(${DOCK_TARGET} PRIVATE ${CMOCKA_LIBRARY})
    if(TARGET drydock_facelib AND label IN_LIST DOCK_VERBS_LABELS AND kind STREQUAL "verbs")
        target_link_libraries(${DOCK_TARGET} PRIVATE drydock_facelib)
    endif()
    if(DOCK_LONG)
        target_compile_definitions(${DOCK_TARGET} PRIVATE DOCK_LONG=1)
    endif()
    if(relative MATCHES "_test\\.c$")
        string(REGEX REPLACE "\\.c$" "" name ${relative})
        dock_add_test(${name} ${label} $<TARGET_FILE:${DOCK_TARGET}>)
    endif()
endforeach()

file(GLOB_RECURSE test_scripts CONFIGURE_DEPENDS tests/*.sh tests/*_test.py)
list(FILTER test_scripts EXCLUDE REGEX "/lib/|/(lib|common)\\.sh$|_lib\\.sh$")
foreach(script IN LISTS test_scripts)
    cmake_path(RELATIVE_PATH script BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/tests OUTPUT_VARIABLE name)
    string(REGEX REPLACE "/.*" "" label ${name})
    dock_add_test(${name} ${label} ${script})
endforeach()
