#!/usr/bin/env bash
# The digits sample as a whole: compiled, trained, the same bits for 1, 2 and 8 threads and after a stop half-way, the object.
# Usage: digits.sh MLC
set -euo pipefail
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
sample=$(cd "$(dirname "$0")/../../samples/digits" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$sample/digits.net" "$sample/optdigits.csv" "$sample/use.c" .
"$mlc" compile digits.net
for threads in 1 2 8; do
    ./digits-train --quiet --epochs 4 --threads $threads --run "run$threads" --save "t$threads.safetensors" --log "t$threads.jsonl" >/dev/null 2>&1
done
digest() { head -c 400 "$1" | grep -ao '"mlc.digest":"[0-9a-f]*"'; }
[ "$(digest t1.safetensors)" = "$(digest t2.safetensors)" ]
[ "$(digest t1.safetensors)" = "$(digest t8.safetensors)" ]
cmp t1.jsonl t8.jsonl
[ "$(wc -l <t1.jsonl)" = 92 ]
./digits-train --run full >out.txt 2>err.txt
accuracy=$(sed -n 's/^  valid  *[0-9]*  *[0-9.]*  *\([0-9.]*\)$/\1/p' out.txt)
echo "accuracy on the held-out part: $accuracy"
awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.975) }'
"$mlc" compile digits.net --emit obj --batch 64 --weights full/weights/best.safetensors
cc -std=c11 -Wall -Wextra -Wconversion -Werror -O2 use.c digits.o -lm -o use
./use optdigits.csv full/split.csv | tee used.txt
# Rows that training never saw: as many right as the trainer counted.
awk -v a="$accuracy" '{ d = $1 / $3 - a; exit !($3 == 359 && d < 1e-4 && d > -1e-4) }' used.txt
if nm digits.o | grep -E ' [BbDdCc] '; then echo "the object has variables"; exit 1; fi
echo "1 passed, 0 failed"
