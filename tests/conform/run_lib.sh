# SPDX-License-Identifier: MIT
# What the tests of `drydock run` share: source it. It gives $build, $drydock, $work (removed at the end),
# expect, expect_words, and end_of_test, which tells the number of failures. scripts/run-one
# sets DRYDOCK_BUILD.

build=${DRYDOCK_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build/dev}
drydock=$build/bin/drydock
rerun="DRYDOCK_BUILD=$build scripts/run-one ${0#"$PWD"/}"
work=$(mktemp -d /tmp/drydock-run-XXXXXX)
trap 'rm -rf "$work"' EXIT
failures=0
checks=0

skip() {
    echo "skipped: $*"
    exit 77
}

# expect WHAT EXPECTED GOT
expect() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] && return
    failures=$((failures + 1))
    printf 'FAILED %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
}

# expect_words WHAT WORDS GOT: the words stand somewhere in what was got.
expect_words() {
    case $3 in
    *"$2"*) expect "$1" "$2" "$2" ;;
    *) expect "$1" "...$2..." "$3" ;;
    esac
}

# absent PROGRAM: what was to be run is not here. The rest is tested, and the test counts as skipped: ./test, which has
# installed what it needs, takes that for a failure.
missing=
absent() {
    case " $missing " in *" $1 "*) ;; *) missing="$missing $1" ;; esac
}

end_of_test() {
    echo "$checks checks, $failures failed"
    [ $failures != 0 ] || [ -z "$missing" ] || skip "not installed:$missing"
    [ $failures = 0 ] && exit 0
    echo "again: $rerun"
    exit 1
}

# listening PORT: is there a TCP socket that does, by the kernel's own table?
listening() {
    grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

[ -x "$drydock" ] || skip "$drydock is not built"

# Libraries that were built with a sanitizer want its runtime first wherever they are loaded.
runtime=$(ldd "$drydock" | sed -nE 's/.* => (.*lib[at]san\.so[^ ]*).*/\1/p')
[ -z "$runtime" ] || export LD_PRELOAD=$runtime ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

# layout DIRECTORY: an installation that holds what `drydock run` looks for; the shim stands in for
# libibverbs, so that these tests say nothing about verbs.
layout() {
    mkdir -p "$1/bin" "$1/lib"
    cp "$drydock" "$1/bin/"
    cp "$build/lib/libdrydock_preload.so" "$1/lib/"
    cp "$build/lib/libdrydock_preload.so" "$1/lib/libibverbs.so.1"
}
