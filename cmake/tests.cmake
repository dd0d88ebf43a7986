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
    target_link_libraries(drydock_facelib PUBLIC face_verbs drydock_so)
endif()

file(GLOB urmalib_sources CONFIGURE_DEPENDS tests/face/urma/lib/*.c)
if(urmalib_sources AND TARGET face_urma)
    add_library(drydock_urmalib STATIC ${urmalib_sources} tests/face/lib/two.c)
    target_include_directories(drydock_urmalib PUBLIC tests ${CMOCKA_INCLUDE})
    target_link_libraries(drydock_urmalib PUBLIC face_urma)
endif()

# Labels whose programs see the verbs face from outside.
set(DOCK_VERBS_LABELS face abi conform)

# Labels that may share the machine with another test; the others fill both cores or need threads that really run at
# once. A test of these says `alone: why` in its first lines if it must be.
set(DOCK_PARALLEL_LABELS unit abi face fuzz conform docs models)

# Which labels the default target builds the programs of; empty: all. The others are there by name.
set(DOCK_TEST_LABELS "" CACHE STRING "Labels of the tests that are built, all if empty")

function(dock_leave_out target label source)
    file(STRINGS ${source} head REGEX "also: " LIMIT_INPUT 2000)
    if(head MATCHES "also: ([a-z]+)")
        list(APPEND label ${CMAKE_MATCH_1})
    endif()
    foreach(one IN LISTS label)
        if(NOT DOCK_TEST_LABELS OR one IN_LIST DOCK_TEST_LABELS)
            return()
        endif()
    endforeach()
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()

function(dock_add_test name label command source)
    file(STRINGS ${source} head REGEX "timeout: |alone: |also: |ports: " LIMIT_INPUT 2000)
    # scripts/run-one keeps the time (a first-lines `timeout: N`), so that a test run by hand has the same limit.
    add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/scripts/run-one ${command})
    set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 86400
        ENVIRONMENT DRYDOCK_BUILD=${CMAKE_BINARY_DIR} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    if(NOT label IN_LIST DOCK_PARALLEL_LABELS OR head MATCHES "alone: ")
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
    if(label STREQUAL "conform" AND NOT head MATCHES "ports: own")
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK tcp_ports) # programs that are given numbers of ports
    endif()
    if(head MATCHES "also: ([a-z]+)") # a second label: `threads` is of tests that ThreadSanitizer should see
        set_property(TEST ${name} APPEND PROPERTY LABELS ${CMAKE_MATCH_1})
    endif()
    if(head MATCHES "[^-]timeout: ([0-9]+)") # the longest first, so that none is left over for one processor
        set_tests_properties(${name} PROPERTIES COST ${CMAKE_MATCH_1})
    endif()
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/*_test.c tests/*_prog.c)
foreach(source IN LISTS test_sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/tests OUTPUT_VARIABLE relative)
    string(REGEX REPLACE "/.*" "" label ${relative})
    set(kind core)
    if(relative MATCHES "^(face|examples|unit)/urma/")
        set(kind urma)
    elseif(relative MATCHES "^(face|unit)/rdmacm/")
        set(kind rdmacm)
    elseif(label IN_LIST DOCK_VERBS_LABELS)
        set(kind verbs)
    endif()
    if(relative MATCHES "^face/shmem/")
        set(kind shmem)
    endif()
    dock_program(${source} ${kind} TEST)
    if(NOT DOCK_TARGET)
        continue()
    endif()
    dock_leave_out(${DOCK_TARGET} ${label} ${source})
    # Parts of a program: NAME_*.c beside NAME_prog.c.
    if(source MATCHES "_prog\\.c$")
        string(REGEX REPLACE "_prog\\.c$" "" stem ${source})
        file(GLOB parts CONFIGURE_DEPENDS ${stem}_*.c)
        list(FILTER parts EXCLUDE REGEX "_(prog|test)\\.c$")
        target_sources(${DOCK_TARGET} PRIVATE ${parts})
    endif()
    target_include_directories(${DOCK_TARGET} PRIVATE tests tests/lib ${CMOCKA_INCLUDE})
    target_link_libraries(${DOCK_TARGET} PRIVATE ${CMOCKA_LIBRARY})
    if(TARGET drydock_facelib AND kind MATCHES "^(verbs|rdmacm)$")
        target_link_libraries(${DOCK_TARGET} PRIVATE drydock_facelib)
    endif()
    if(TARGET drydock_urmalib AND kind STREQUAL "urma")
        target_link_libraries(${DOCK_TARGET} PRIVATE drydock_urmalib)
    endif()
    if(DOCK_LONG)
        target_compile_definitions(${DOCK_TARGET} PRIVATE DOCK_LONG=1)
    endif()
    if(relative MATCHES "_test\\.c$")
        string(REGEX REPLACE "\\.c$" "" name ${relative})
        dock_add_test(${name} ${label} $<TARGET_FILE:${DOCK_TARGET}> ${source})
    endif()
endforeach()

# Tests that look at the calls which the arena makes without libc: its sources once more, with a hook there.
foreach(hooked nth_device_test adopt_count_test adopt_late_signal_test)
    if(TARGET tests-fault-${hooked} AND NOT DOCK_SANITIZE)
        file(GLOB arena_sources CONFIGURE_DEPENDS src/arena/adopt*.c)
        target_sources(tests-fault-${hooked} PRIVATE ${arena_sources} src/arena/maps.c src/arena/procfile.c src/arena/view.c)
        target_compile_definitions(tests-fault-${hooked} PRIVATE DOCK_RAWCALL_FAILS=1)
    endif()
endforeach()

# The cases of OpenSHMEM once more, with a device that delays and reorders: in one program, since its fabric is the tests'.
if(TARGET tests-face-shmem-litmus_prog AND TARGET drydock_testlib)
    file(GLOB litmus_sources CONFIGURE_DEPENDS tests/face/shmem/litmus_*.c)
    add_executable(tests-face-shmem-late ${litmus_sources} ${shmem_sources} tests/face/shmem/late_start.c)
    set_target_properties(tests-face-shmem-late PROPERTIES OUTPUT_NAME late_prog
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/face/shmem)
    dock_leave_out(tests-face-shmem-late face tests/face/shmem/late_start.c)
    target_include_directories(tests-face-shmem-late PRIVATE tests)
    target_link_options(tests-face-shmem-late PRIVATE -Wl,--wrap=dock_dev_get -Wl,--wrap=dock_dev_put)
    target_link_libraries(tests-face-shmem-late PRIVATE drydock_testlib drydock_core Threads::Threads m)
endif()

file(GLOB_RECURSE test_scripts CONFIGURE_DEPENDS tests/*.sh tests/*_test.py)
list(FILTER test_scripts EXCLUDE REGEX "/lib/|/(lib|common)\\.sh$|_lib\\.sh$")
foreach(script IN LISTS test_scripts)
    cmake_path(RELATIVE_PATH script BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/tests OUTPUT_VARIABLE name)
    string(REGEX REPLACE "/.*" "" label ${name})
    dock_add_test(${name} ${label} ${script} ${script})
endforeach()
