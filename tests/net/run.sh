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
# Every .net file of the repository that can be read: formatting twice gives the same text, and no comment goes.
for net in $(cd ../.. && find samples tests -name '*.net'); do
    cp "../../$net" "$examples/once.net"
    "$mlc" fmt "$examples/once.net" >/dev/null 2>&1 || continue
    cp "$examples/once.net" "$examples/twice.net"
    if "$mlc" fmt "$examples/twice.net" >"$out" 2>&1 && cmp "$examples/once.net" "$examples/twice.net" >>"$out" &&
        [ "$(grep -c '#' "../../$net")" = "$(grep -c '#' "$examples/once.net")" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL fmt of $net"
        cat "$out"
    fi
done
rm -f "$examples/once.net" "$examples/twice.net"
# Whole models of the kinds that the language is for. Ops and attributes that are not there yet (E0201, E0202) stand in the way
# of some, and what language/expected.txt lists; another error fails.
for net in language/*.net; do
    "$mlc" check "$net" 2>&1 >/dev/null | sed -n 's/^language.[a-z0-9]*\.net:[0-9]*:[0-9]*: error: //p' | grep -v '\[E020[12]\]' >"$out"
    if new=$(grep -vxF -f language/expected.txt "$out"); then
        failed=$((failed + 1))
        echo "FAIL $net"
        echo "$new"
    else
        passed=$((passed + 1))
    fi
done
# Commands that are no good: each says its message.
while read -r message command; do
    # shellcheck disable=SC2086
    if "$mlc" $command >"$out" 2>&1; then
        echo "FAIL mlc $command: it went well"
        failed=$((failed + 1))
    elif grep -q "\[$message[],]" "$out"; then
        passed=$((passed + 1))
    else
        echo "FAIL mlc $command: no $message"
        failed=$((failed + 1))
    fi
done <commands.txt
# Every message of the language and of mlc is earned by a test, or unearned.txt says why not.
for message in $(sed -n 's/^MESSAGE(\([EW][0-9]*\),.*/\1/p' ../../compiler/messages.def); do
    if grep -qs "\[$message[],]" ./*.err || grep -q "^$message " unearned.txt commands.txt || grep -rqs "$message" ../cli ../train ../unit; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $message: no test earns this message"
    fi
done
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
