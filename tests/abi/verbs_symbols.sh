#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libibverbs.so.1 exports exactly the rows of data/libibverbs_symbols.csv: each name, node, default mark, kind and
# the size of the one data object; beside them our own two (include/drydock/verbs.h) and not one more. The nodes form the
# chain that Debian's have.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/abi/symbols_lib.sh

parents="IBVERBS_1.1<IBVERBS_1.0 IBVERBS_1.5<IBVERBS_1.1 "
for minor in 6 7 8 9 10 11 12 13 14; do
    parents+="IBVERBS_1.$minor<IBVERBS_1.$((minor - 1)) "
done
check_symbols "${DRYDOCK_BUILD:-build/dev}/lib/libibverbs.so.1" tests/abi/data/libibverbs_symbols.csv libibverbs.so.1 \
    "$parents" drydock_create_direct_qp,DRYDOCK_1,yes,function, drydock_direct_queue,DRYDOCK_1,yes,function,
