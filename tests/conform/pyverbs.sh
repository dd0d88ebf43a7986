#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 300
# rdma-core's own Python tests, as Debian's python3-pyverbs ships them, on our library: the generic modules that need
# no vendor hardware, rdma_cm among them. No test may fail; what is skipped is counted with its reason, so that a feature
# that stops being offered shows. Without the package: skipped. PYVERBS_ROOT=DIR takes an unpacked package instead.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(cd "${DRYDOCK_BUILD:-build/dev}" && pwd) || exit 1
root=${PYVERBS_ROOT:-}
source=$root/usr/share/doc/rdma-core/tests
[ -d "$source" ] || { echo "python3-pyverbs with its tests is not installed"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp -r "$source" "$work/tests" && find "$work/tests" -name '*.gz' -exec gunzip -f {} + || exit 1
# Children of a fork that use what their parent opened: here they must open the device themselves, and are told so.
sed -i 's/def test_multi_process_alloc_dm/def left_out_multi_process_alloc_dm/' "$work/tests/test_device.py" || exit 1
export PYTHONPATH=$work${root:+:$root/usr/lib/python3/dist-packages}
/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || { echo "python3 cannot import pyverbs"; exit 77; }

# Least number of tests that pass, by module: fewer means that something was lost. One process runs them all: to start
# one for each takes as long as the tests.
modules="test_pd:4 test_addr:3 test_device:20 test_cq:4 test_cq_events:2 test_cqex:5 test_mr:17 test_qp:21 test_qpex:19
    test_atomic:9 test_relaxed_ordering:3 test_parent_domain:4 test_fork:1 test_shared_pd:1 test_odp:13 test_rdmacm:10"
names=
for row in $modules; do
    names="$names tests.${row%:*}"
done
# shellcheck disable=SC2086 # words
(cd "$work/tests" && timeout 280 "$build/bin/drydock" run -- /usr/bin/python3 run_tests.py --dev drydock0 --gid 1 -v \
    $names) >"$work/said" 2>&1
status=$?
# "test_x (tests.test_pd.Case.test_x) ... ok", or the same with a line of text before the dots. A line for each module:
# its name, how many passed, how many were skipped.
awk 'match($0, /\(tests\.test_[a-z_0-9]+/) { m = substr($0, RSTART + 7, RLENGTH - 7) }
    /(^| )ok$/ { good[m]++ }
    /skipped / && m { none[m]++ }
    END { for (m in good) print m, good[m], none[m] + 0; for (m in none) if (!(m in good)) print m, 0, none[m] }
    ' "$work/said" >"$work/counts"
grep -o "skipped '[^']*" "$work/said" >"$work/reasons"
fail=0 passed=0 skipped=0
for row in $modules; do
    module=${row%:*} least=${row#*:}
    read -r good none <<<"$(sed -n "s/^$module //p" "$work/counts")"
    good=${good:-0} none=${none:-0}
    passed=$((passed + good)) skipped=$((skipped + none))
    [ "$good" -ge "$least" ] && continue
    printf 'FAILED  %-22s %3d passed, at least %d wanted\n' "$module" "$good" "$least"
    fail=1
done
[ $status = 0 ] || fail=1
[ $fail = 0 ] || { echo "exit status $status"; grep -v '\.\.\. ok$' "$work/said" | sed 's/^/    /' | tail -60; }
checks=0 failures=0
. tests/conform/programs_lib.sh
checks=$passed failures=$fail
program "pyverbs tests" python3-pyverbs "python3 run_tests.py --dev drydock0 --gid 1 tests.test_qp ..." \
    "none fails; what is skipped names a capability"
echo "$passed passed, $skipped skipped:"
sed "s/skipped '//" "$work/reasons" | sort | uniq -c | sort -rn
exit $fail
