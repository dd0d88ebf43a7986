#!/bin/bash
# SPDX-License-Identifier: MIT
# `drydock run`: the environment that a program gets, one banner line, exit codes, refusals in words.
. "$(dirname "$0")/run_lib.sh"

layout "$work/all"
run="$work/all/bin/drydock run"
lib=$work/all/lib

# --- the environment
before=${LD_PRELOAD:+$LD_PRELOAD:}
got=$(LD_LIBRARY_PATH= $run -- sh -c 'echo "$LD_LIBRARY_PATH"' 2>/dev/null)
expect "LD_LIBRARY_PATH is our directory, absolute" "$lib" "$got"
got=$($run sh -c 'echo "$LD_PRELOAD"' 2>/dev/null)
expect "LD_PRELOAD names the libraries that are there, absolute" \
    "$before$lib/libibverbs.so.1:$lib/libdrydock_preload.so" "$got"
cp "$lib/libdrydock_preload.so" "$lib/librdmacm.so.1"
got=$($run sh -c 'echo "$LD_PRELOAD"' 2>/dev/null)
expect "LD_PRELOAD names librdmacm once it is there" \
    "$before$lib/libibverbs.so.1:$lib/librdmacm.so.1:$lib/libdrydock_preload.so" "$got"
cp "$lib/libdrydock_preload.so" "$work/users.so"
got=$(LD_LIBRARY_PATH=/opt/users LD_PRELOAD=$before$work/users.so $run sh -c 'echo "$LD_LIBRARY_PATH $LD_PRELOAD"' \
    2>/dev/null)
expect_words "LD_LIBRARY_PATH keeps what the user had, behind" "$lib:/opt/users" "$got"
expect_words "LD_PRELOAD keeps what the user had, in front" "$work/users.so:$lib/libibverbs.so.1" "$got"
once=$($run env 2>/dev/null | grep ^LD_ | sort)
twice=$($run -- $run -- env 2>/dev/null | grep ^LD_ | sort)
expect "a run inside a run changes nothing" "$once" "$twice"
got=$($run sh -c 'printf "%s|" "$@"' sh 'a b' '' '--' 2>/dev/null)
expect "arguments arrive as they are" "a b||--|" "$got"
got=$(USERS_OWN='x y' $run sh -c 'echo "$USERS_OWN"' 2>/dev/null)
expect "other variables arrive as they are" "x y" "$got"
got=$(echo in | $run cat 2>/dev/null)
expect "standard input and output are the program's" in "$got"

# --- the banner
got=$($run -- true 2>&1 >/dev/null)
expect "the banner is one line that names device and program" "drydock: drydock0 (RoCE, software) for true" "$got"
got=$(DRYDOCK_NAME=mlx5_0 $run /bin/true 2>&1 >/dev/null)
expect "the banner names the device as DRYDOCK_NAME does" "drydock: mlx5_0 (RoCE, software) for true" "$got"

# --- exit codes
$run sh -c 'exit 7' 2>/dev/null
expect "the program's own exit code" 7 $?
{ $run sh -c 'kill -TERM $$'; } 2>/dev/null
expect "the program's own signal" 143 $?
got=$($run no-such-program 2>&1)
expect "a program that is not there: 127" 127 $?
expect "a program that is not there: one line" "drydock: no-such-program: not found" "$got"
echo text >"$work/text"
got=$($run "$work/text" 2>&1)
expect "a file that is not executable: 126" 126 $?
expect_words "a file that is not executable: reason" "not an executable file" "$got"
$run "$work" 2>/dev/null
expect "a directory: 126" 126 $?
printf '#!/no/such/interpreter\n' >"$work/lost"
chmod +x "$work/lost"
$run "$work/lost" 2>/dev/null
expect "a script without its interpreter: 127" 127 $?
for wrong in "" "--" "-x true"; do
    got=$($run $wrong 2>&1)
    expect "run $wrong: 125" 125 $?
    expect_words "run $wrong: usage" "usage: drydock run" "$got"
done

# --- refusals: one line, and the program does not start
# refused WHAT WORDS COMMAND...
refused() {
    local what=$1 words=$2
    shift 2
    got=$("$@" 2>&1)
    expect "$what: 125" 125 $?
    expect_words "$what: reason" "$words" "$got"
    expect "$what: one line" 1 "$(echo "$got" | wc -l)"
}

if LC_ALL=C LD_PRELOAD= ldd /sbin/ldconfig 2>&1 | grep -q "statically linked"; then
    refused "a statically linked program" "statically linked" $run /sbin/ldconfig --version
    printf '#!/sbin/ldconfig\n' >"$work/script"
    chmod +x "$work/script"
    refused "a script of a statically linked program" "is a script for /sbin/ldconfig" $run "$work/script"
else
    echo "note: no statically linked program here, its refusal is covered by the unit test only"
fi
cp /bin/true "$work/raised"
if chown 65534 "$work/raised" 2>/dev/null && chmod u+s "$work/raised" &&
    ! findmnt -no OPTIONS -T "$work" | grep -q nosuid; then
    refused "a set-user-ID program" "set-user-ID" $run "$work/raised"
else
    echo "note: cannot make a set-user-ID program of another user here, its refusal is not tried"
fi
mkdir -p "$work/alone/bin" "$work/a blank"
cp "$drydock" "$work/alone/bin/"
refused "missing libraries" "build or install Drydock whole" "$work/alone/bin/drydock" run true
layout "$work/a blank"
refused "a library directory that LD_PRELOAD cannot express" "cannot be expressed" "$work/a blank/bin/drydock" run true
mkdir -m 755 "$work/loose"
refused "a runtime directory that others may enter" "refused" env DRYDOCK_DIR="$work/loose" $run true

end_of_test
