# SPDX-License-Identifier: MIT
# Sourced by the scripts beside it: start jobs, compare what they say.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${DRYDOCK_BUILD:-$root/build/dev}
programs=$build/tests/face/shmem
failures=0
checks=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$build/bin/oshrun" ] || { echo "skipped: $build/bin/oshrun is not built"; exit 77; }
[ "${DRYDOCK_EMULATED:-0}" = 0 ] || { echo "skipped: a job of several emulated processes takes minutes"; exit 77; }

# job N PROGRAM ARGS: output in $out, messages in $err, exit status in $status. It has $limit seconds, longer under a
# sanitizer.
limit=$((50 * ${DRYDOCK_SLOW:-1}))
job()
{
    local n=$1
    shift
    again="build/dev/bin/oshrun -np $n $*"
    timeout -k 2 $limit "$build/bin/oshrun" -np "$n" "$@" >"$work/out" 2>"$work/err"
    status=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}

expect()
{
    checks=$((checks + 1))
    [ "$2" = "$3" ] && return
    failures=$((failures + 1))
    printf 'FAILED %s\n  expected: %s\n  got:      %s\n  messages: %s\n  again: %s\n' "$1" "$2" "$3" "$err" "$again"
}

# The text holds the words.
expect_words()
{
    case $3 in
    *"$2"*) checks=$((checks + 1)) ;;
    *) expect "$1" "...$2..." "$3" ;;
    esac
}

end_of_test()
{
    echo "$checks checks, $failures failed"
    [ $failures = 0 ] || exit 1
    exit 0
}
