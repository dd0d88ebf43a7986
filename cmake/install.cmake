# SPDX-License-Identifier: MIT
# What is installed: the libraries in a directory of their own, PREFIX/lib/drydock, so that nothing shadows the
# system's libibverbs by accident; `drydock run` finds it from its own place, wherever PREFIX was moved to.
include(GNUInstallDirs)
set(DOCK_LIBDIR lib/drydock)

foreach(part drydock_so face_verbs face_urma_common face_urma face_tpsa face_ubagg face_rdmacm face_shmem drydock_preload)
    if(TARGET ${part})
        set_target_properties(${part} PROPERTIES INSTALL_RPATH "$ORIGIN")
        install(TARGETS ${part} LIBRARY DESTINATION ${DOCK_LIBDIR})
    endif()
endforeach()
foreach(alias oshmem sma)
    install(FILES ${CMAKE_BINARY_DIR}/lib/lib${alias}.so DESTINATION ${DOCK_LIBDIR})
endforeach()
foreach(part drydock oshrun)
    if(TARGET ${part})
        install(TARGETS ${part} RUNTIME DESTINATION bin)
    endif()
endforeach()
install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/oshcc ${CMAKE_BINARY_DIR}/bin/oshc++ DESTINATION bin)
install(DIRECTORY include/ DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
