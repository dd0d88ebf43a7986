#!/bin/bash
# SPDX-License-Identifier: MIT
# `drydock info` and the command's own manners: what is wrong is told in words, on the right stream, with a code.
. "$(dirname "$0")/run_lib.sh"

layout "$work/all"
drydock=$work/all/bin/drydock
root=$(cd "$(dirname "$0")/../.." && pwd)

info=$("$drydock" info 2>"$work/stderr")
expect "info: exit code" 0 $?
expect "info: says nothing on standard error" "" "$(cat "$work/stderr")"
expect_words "info: the device's name" "drydock0 (RoCE, software)" "$info"
expect_words "info: the profile" "profile  strict" "$info"
expect_words "info: the runtime directory" "$DRYDOCK_DIR, usable" "$info"
expect_words "info: the libraries" "$work/all/lib" "$info"
for ability in process_vm memfd pidfd membarrier; do
    expect "info: one line about $ability" 1 "$(grep -cE "^  $ability +(yes|no \()" <<<"$info")"
done
for variable in $(grep -rhoE '"DRYDOCK_[A-Z_]*[A-Z]"' "$root/src" --include='*.c' | tr -d '"' | sort -u); do
    expect_words "info: the variable $variable, which a source reads" "  $variable " "$info"
done
expect_words "info: a renamed device" "mlx5_0 (RoCE, software)" "$(DRYDOCK_NAME=mlx5_0 "$drydock" info)"
expect_words "info: the value of a variable" "= udma " "$(DRYDOCK_PROFILE=udma "$drydock" info | grep DRYDOCK_PROFILE)"

expect_words "info: a limit that was set" "objects  77 queue pairs" "$(DRYDOCK_MAX_QP=77 "$drydock" info)"

mkdir -m 755 "$work/loose"
got=$(DRYDOCK_DIR=$work/loose "$drydock" info 2>/dev/null)
expect "info: a directory that is not usable is no failure" 0 $?
expect_words "info: it says why" "not usable: runtime directory $work/loose refused" "$got"
mkdir -p "$work/alone/bin"
cp "$drydock" "$work/alone/bin/"
expect_words "info: libraries that are missing" "missing beside this command" "$("$work/alone/bin/drydock" info)"

got=$("$drydock" show)
expect "show: nothing is live" "0 no live device in this runtime directory" "$? $got"
expect "show --json: nothing is live" "[]" "$("$drydock" show --json | tr -d ' \n')"
DRYDOCK_DIR=$work/loose "$drydock" show 2>"$work/stderr"
expect "show: a directory that is not usable: 1" 1 $?
expect "show: one line says why" 1 "$(wc -l <"$work/stderr")"

for wrong in "" "nonsense" "info more" "show more" "show --json more"; do
    "$drydock" $wrong >"$work/stdout" 2>"$work/stderr"
    expect "drydock $wrong: 2" 2 $?
    expect "drydock $wrong: nothing on standard output" "" "$(cat "$work/stdout")"
    expect_words "drydock $wrong: usage" usage "$(cat "$work/stderr")"
done
for help in help --help -h; do
    expect_words "drydock $help" "drydock run [--] PROGRAM" "$("$drydock" $help)"
done

end_of_test
