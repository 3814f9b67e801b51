#!/bin/sh
# Compares what mlc generates for each net here with the text that is checked in, byte for byte.
#   tests/golden/run.sh MLC            fails where they differ
#   tests/golden/run.sh MLC --update   writes the new texts; look at the diff before committing it
# x.net gives x.train.c if it has a `train` section, and x.c with x.h, the inference object.
set -u
mlc=${1:?usage: run.sh MLC [--update]}
update=${2:-}
case $mlc in */*) mlc=$(cd "$(dirname "$mlc")" && pwd)/$(basename "$mlc") ;; esac
cd "$(dirname "$0")" || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
failed=0

check() { # file made, file kept
    if [ "$update" = --update ]; then
        cp "$1" "$2" || failed=1
    elif ! diff -u "$2" "$1" >"$out/diff" 2>&1; then
        head -40 "$out/diff"
        echo "$2: differs from what mlc writes" >&2
        failed=1
    fi
}

count=0
for net in *.net; do
    name=${net%.net}
    if grep -q '^train' "$net"; then
        "$mlc" compile "$net" --emit train_c -o "$out/$name.train.c" && check "$out/$name.train.c" "$name.train.c.expected" || failed=1
        count=$((count + 1))
    fi
    "$mlc" compile "$net" --emit c -o "$out/$name.c" && check "$out/$name.c" "$name.c.expected" || failed=1
    count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no nets in tests/golden" >&2; exit 2; }
[ "$failed" = 0 ] && echo "golden: $count texts as expected"
exit "$failed"
