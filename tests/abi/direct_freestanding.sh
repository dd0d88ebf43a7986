#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# include/drydock/direct.h is freestanding: compiled without a libc, for this machine and for aarch64, every one of
# its functions leaves no symbol to be found elsewhere.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

cat >"$work/all.c" <<'SOURCE'
#include "drydock/direct.h"
int all(struct drydock_queue *q, const struct drydock_target *t, uint64_t *word);
int all(struct drydock_queue *q, const struct drydock_target *t, uint64_t *word)
{
    int err = drydock_post_write(q, t, t->address, word, 8, DRYDOCK_COMPLETE);
    err |= drydock_post_read(q, t, t->address, word, 8, DRYDOCK_FENCE);
    err |= drydock_post_write_notify(q, t, t->address, word, 8, t, t->address + 8, 1, DRYDOCK_SOLICITED);
    err |= drydock_post_fetch_add(q, t, t->address, word, 1, 0);
    err |= drydock_post_compare_swap(q, t, t->address, word, 1, 2, 0);
    err |= drydock_post_send(q, t, word, 8, 0);
    if (drydock_ring_whole(q))
        drydock_ring(q);
    return err | drydock_quiet(q) | (int)drydock_poll(q);
}
SOURCE

fail=0
compile()
{
    local cc=$1 nm=$2
    shift 2
    if ! "$cc" -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -nostdinc \
        -isystem "$("$cc" -print-file-name=include)" -Iinclude "$@" -c "$work/all.c" -o "$work/all.o"; then
        echo "$cc $*: expected to compile without a libc"
        fail=1
        return
    fi
    undefined=$("$nm" -u "$work/all.o")
    [ -z "$undefined" ] || { printf '%s %s: expected no undefined symbol, got\n%s\n' "$cc" "$*" "$undefined"; fail=1; }
}

check="-DDRYDOCK_DIRECT_CHECK -DDRYDOCK_PRODUCER=1"
compile gcc nm
# shellcheck disable=SC2086
compile gcc nm $check
if command -v aarch64-linux-gnu-gcc >/dev/null; then
    compile aarch64-linux-gnu-gcc aarch64-linux-gnu-nm -mno-outline-atomics
    # shellcheck disable=SC2086
    compile aarch64-linux-gnu-gcc aarch64-linux-gnu-nm -mno-outline-atomics $check
else
    echo "no compiler for aarch64: that half was not looked at"
fi
exit $fail
