#!/bin/sh
# run.sh MLC [--interpret] [DIR]: the operator cases in DIR (written by generate.py; without it the few beside this file) give what
# expected.txt says: each passes, or is refused for the reason that stands there. `run.sh MLC --record DIR` writes expected.txt.
here=$(cd "$(dirname "$0")" && pwd)
mlc=$1 how= record=
shift
[ "$1" = --interpret ] && how=--interpret && shift
[ "$1" = --record ] && record=1 how=--interpret && shift
cases=${1:-$here/cases}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
"$mlc" verify "$cases" $how --jobs 2 >"$work/all"
grep -E '^(passed|failed|skipped) ' "$work/all" | sed 's/  */ /' | LC_ALL=C sort -k2 >"$work/got"
[ -n "$record" ] && { cp "$work/got" "$here/expected.txt"; tail -n 1 "$work/all"; exit; }
ls "$cases" | grep '^test_' | LC_ALL=C sort >"$work/names"
awk 'NR == FNR { there[$1] = 1; next } { name = $2; sub(/:$/, "", name); if (name in there) print }' "$work/names" "$here/expected.txt" >"$work/wanted"
[ -s "$work/wanted" ] || { echo "no case is in expected.txt"; exit 1; }
diff "$work/wanted" "$work/got" || { echo "the cases differ from expected.txt (<)"; exit 1; }
tail -n 1 "$work/all"
