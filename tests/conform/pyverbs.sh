#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 300
# rdma-core's own Python tests, as Debian's python3-pyverbs ships them, on our library: the generic modules that need
# no vendor hardware and no rdma_cm. No test may fail; what is skipped is counted with its reason, so that a feature
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

# Least number of tests that pass, by module: fewer means that something was lost.
modules="test_pd:4 test_addr:3 test_device:19 test_cq:4 test_cq_events:2 test_cqex:5 test_mr:17 test_qp:21 test_qpex:19
    test_atomic:9 test_relaxed_ordering:3 test_parent_domain:4 test_fork:1 test_shared_pd:1 test_odp:13"
fail=0 passed=0 skipped=0
for row in $modules; do
    module=${row%:*} least=${row#*:}
    (cd "$work/tests" && timeout 100 "$build/bin/drydock" run -- /usr/bin/python3 run_tests.py --dev drydock0 --gid 1 -v \
        "tests.$module") >"$work/said" 2>&1
    status=$?
    good=$(grep -cE "(^| )ok$" "$work/said")
    none=$(grep -c 'skipped ' "$work/said")
    passed=$((passed + good)) skipped=$((skipped + none))
    if [ $status = 0 ] && [ "$good" -ge "$least" ]; then
        printf 'ok      %-22s %3d passed, %3d skipped\n' "$module" "$good" "$none"
    else
        printf 'FAILED  %-22s %3d passed (at least %d wanted), exit status %d\n' "$module" "$good" "$least" $status
        sed 's/^/    /' "$work/said" | tail -40
        fail=1
    fi
    grep -o "skipped '[^']*" "$work/said" >>"$work/reasons"
done
checks=0 failures=0
. tests/conform/programs_lib.sh
checks=$passed failures=$fail
program "pyverbs tests" python3-pyverbs "python3 run_tests.py --dev drydock0 --gid 1 tests.test_qp ..." \
    "none fails; what is skipped names a capability"
echo "$passed passed, $skipped skipped:"
sed "s/skipped '//" "$work/reasons" | sort | uniq -c | sort -rn
exit $fail
