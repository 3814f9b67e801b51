#!/bin/sh
# models.sh MLC: the models of samples/models have as many parameters as the public ones, under the same names and of the
# same shapes (models/NAME.txt, which models/record.py wrote).
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")" || exit 2
passed=0
failed=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
# same NAMES COUNT FILE [options of mlc]
same() {
    names=$1
    count=$2
    file=$3
    shift 3
    if "$mlc" inspect "../../samples/models/$file.net" --parameters "$@" >"$work/table" 2>"$work/errors" &&
        sed -n 's/^\([^ ]*\)  *\([a-z0-9]*\[[0-9, ]*\]\).*/\1 \2/p' "$work/table" | LC_ALL=C sort >"$work/names" &&
        LC_ALL=C sort "models/$names.txt" | diff - "$work/names" >"$work/difference" &&
        "$mlc" inspect "../../samples/models/$file.net" "$@" 2>"$work/errors" | grep -q "^parameters  *$count "; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $names"
        head -n 10 "$work/errors" "$work/difference"
    fi
}
same resnet18 11,689,512 resnet18
same resnet50 25,557,032 resnet50
same mobilenetv2 3,504,872 mobilenetv2
same mobilenetv2_quarter 1,519,112 mobilenetv2 -D width=0.25
same gpt2 124,439,808 gpt2
same bert 109,482,240 bert
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
