# SPDX-License-Identifier: MIT
# The table of programs in README.md: a test that runs programs leaves a row for each of them in the build directory, and
# scripts/programs-table joins them. Source it after $build, $failures and $checks are there.

rows=$build/programs/$(basename "$0").rows
[ -z "${only:-}" ] || [ "$only" = . ] || rows=/dev/null # a part says nothing of the whole
mkdir -p "$build/programs"
: >"$rows"
failures_before=$failures
checks_before=$checks

# program NAME PACKAGE HOW RESULT: the end of what NAME was run for. RESULT is what it is when no check has failed since
# the row before.
program() {
    local result=$4
    [ "$checks" != "$checks_before" ] || result="not run"
    [ "$failures" = "$failures_before" ] || result="FAILED"
    failures_before=$failures
    checks_before=$checks
    printf '%s\t%s\t%s\t%s\n' "$1" "$(dpkg-query -W -f='${Version}' "$2" 2>/dev/null || echo none)" "$3" "$result" >>"$rows"
}
