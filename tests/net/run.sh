#!/bin/sh
# run.sh MLC: checks the .net files of this folder. A file with x.err beside it must fail with exactly these diagnostics
# (or warn, if they are warnings); any other must pass `mlc check` in silence. `mlc fmt FILE` writes
# the file anew. A first line "# options: …" gives options.
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")" || exit 2
passed=0
failed=0
out=$(mktemp) || exit 2
examples=$(mktemp -d) || exit 2
trap 'rm -rf "$out" "$examples"' EXIT
for net in *.net; do
    [ "${net#part_}" = "$net" ] || continue             # parts that others import
    options=$(sed -n '1s/^# options: //p' "$net")
    verb=$(sed -n '1s/^# verb: //p' "$net")
    # shellcheck disable=SC2086
    "$mlc" ${verb:-check} $options "$net" >/dev/null 2>"$out"
    code=$?
    want=/dev/null
    good=0
    [ -f "${net%.net}.err" ] && want=${net%.net}.err
    grep -q ': error: ' "$want" && good=1
    if [ $code -eq $good ] && cmp -s "$want" "$out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $net (exit $code)"
        diff "$want" "$out" | head -20
    fi
done
# The formatter: x.net becomes x.fmt, which stays as it is.
for net in fmt/*.net; do
    for from in "$net" "${net%.net}.fmt"; do
        cp "$from" "$examples/formatted.net"
        if "$mlc" fmt "$examples/formatted.net" >"$out" 2>&1 && cmp -s "${net%.net}.fmt" "$examples/formatted.net"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL fmt of $from"
            cat "$out"
            diff "${net%.net}.fmt" "$examples/formatted.net" | head -20
        fi
    done
done
rm -f "$examples/formatted.net"
# The examples of the language reference: each ```net fence is a whole file.
awk -v to="$examples" '/^```net$/ { file = sprintf("%s/example_%02d.net", to, ++n); next } /^```/ { file = "" }
                       file != "" { print > file }' ../../frontend/net/LANGUAGE.md
for net in "$examples"/*.net; do
    cp "$net" "$net.fmt"
    if "$mlc" check "$net" >"$out" 2>&1 && [ ! -s "$out" ] && "$mlc" fmt "$net.fmt" && cmp "$net" "$net.fmt"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL LANGUAGE.md, $(basename "$net")"
        head -20 "$out"
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
