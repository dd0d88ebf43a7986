# SPDX-License-Identifier: MIT
# Cross build with Debian's gcc-aarch64-linux-gnu. What that package has not (cmocka, the verbs headers) scripts/setup
# unpacks below build/arm64, so that the machine itself needs no second architecture.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(DOCK_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64)
cmake_path(NORMAL_PATH DOCK_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${DOCK_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# In the cache, because scripts/run-one looks there for the way to start a test.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;/usr/aarch64-linux-gnu" CACHE STRING "starts aarch64 programs")
