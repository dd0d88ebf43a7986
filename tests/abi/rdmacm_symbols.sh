#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# librdmacm.so.1 exports exactly the rows of data/librdmacm_symbols.csv, in the four nodes of Debian's library.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/abi/symbols_lib.sh

check_symbols "${DRYDOCK_BUILD:-build/dev}/lib/librdmacm.so.1" tests/abi/data/librdmacm_symbols.csv librdmacm.so.1 \
    "RDMACM_1.1<RDMACM_1.0 RDMACM_1.2<RDMACM_1.1 RDMACM_1.3<RDMACM_1.2 "
fail=$?

# Every call has its row of wrong arguments; rsockets have a test of their own.
for name in $(awk -F, '$1 ~ /^rdma_/ { print $1 }' tests/abi/data/librdmacm_symbols.csv); do
    grep -qE "^(ROW|TOTAL)\($name[,)]" tests/face/rdmacm/bad_input_rows.h && continue
    echo "$name has no row in tests/face/rdmacm/bad_input_rows.h"
    fail=1
done
exit $fail
