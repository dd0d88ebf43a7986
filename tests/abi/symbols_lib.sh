# SPDX-License-Identifier: MIT
# check_symbols LIBRARY LIST SONAME "PARENTS " [ROW...]: the library exports exactly the rows of LIST (name, node, default
# mark, kind, size of a data object) and those given beside it, not one more, not one less; PARENTS are its version
# nodes as "NODE<PARENT" words.
check_symbols() {
    local library=$1 list=$2 soname=$3 expected_parents=$4 work fail=0 missing extra parents got
    shift 4
    work=$(mktemp -d) || return 1

    { tail -n +2 "$list" | tr -d '\r'; [ $# = 0 ] || printf '%s\n' "$@"; } | sort >"$work/expected"
    # Columns of readelf: number value size type bind visibility section name@version or name@@version.
    readelf --dyn-syms --wide "$library" | awk '
        $7 == "UND" || $7 == "ABS" || $8 !~ /@/ { next }
        { split($8, part, /@+/)
          kind = ($4 == "OBJECT") ? "object" : "function"
          print part[1] "," part[2] "," ($8 ~ /@@/ ? "yes" : "no") "," kind "," (kind == "object" ? $3 : "") }
    ' | sort >"$work/got"
    missing=$(comm -23 "$work/expected" "$work/got")
    extra=$(comm -13 "$work/expected" "$work/got")
    [ -z "$missing" ] || { printf 'missing from %s:\n%s\n' "$library" "$missing"; fail=1; }
    [ -z "$extra" ] || { printf 'exported by %s, not in the list:\n%s\n' "$library" "$extra"; fail=1; }

    # "Parent 1: NODE" lines follow their node; an inherited node that is not the one before breaks dlvsym users.
    parents=$(readelf --version-info --wide "$library" | awk '
        /Name: [A-Z]+_[0-9.]+$/ { for (i = 1; i <= NF; i++) if ($i == "Name:") node = $(i + 1) }
        /Parent 1: [A-Z]+_/ { print node "<" $NF }' | tr '\n' ' ')
    if [ "$parents" != "$expected_parents" ]; then
        printf 'parents of the version nodes\n  expected %s\n  got      %s\n' "$expected_parents" "$parents"
        fail=1
    fi
    got=$(readelf --dynamic "$library" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
    [ "$got" = "$soname" ] || { echo "SONAME: expected $soname, got $got"; fail=1; }
    [ -e "${library%.1}" ] || { echo "no link ${library%.1}: programs that dlopen it take the system's"; fail=1; }
    [ $fail = 0 ] && echo "$(wc -l <"$work/expected") symbols of $soname, as listed"
    rm -rf "$work"
    return $fail
}
