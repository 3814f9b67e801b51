#!/usr/bin/env bash
# Trains nets of this folder for 20 steps from the weights that record.py began with, and compares with what PyTorch gave.
# Usage: run.sh MLC PARITY [NAME ...]; PARITY is parity.c compiled. PARITY_ALL=1 shows every parameter.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mlc=$(realpath "$1")
parity=$(realpath "$2")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$here"/../../samples/digits/optdigits.csv .
head -n 50 optdigits.csv >rows.csv
[ $# -gt 0 ] || set -- mlp convnet schedule resnet18 mobilenetv2 lstm gpt
passed=0
for name; do
    cp "$here/$name.net" .
    echo "$name"
    if "$mlc" compile "$name.net" &&
        ./"$name-train" --init-only drawn.safetensors >/dev/null &&
        "$parity" fill drawn.safetensors begin.safetensors &&
        ./"$name-train" --weights begin.safetensors --steps 20 --no-shuffle --quiet --run "$name" --log "$name.jsonl" \
            --save "$name.after" >out.txt 2>&1 &&
        ./"$name-train" --weights "$name.after" --predict rows.csv --out "$name.csv" >>out.txt 2>&1 &&
        "$parity" compare "$here/$name" "$name.jsonl" "$name.after" "$name.csv" &&
        ./"$name-train" --weights "$name.after" --eval >table.txt &&
        "$parity" evaluation "$here/$name" table.txt; then
        passed=$((passed + 1))
    else
        cat out.txt 2>/dev/null || true
        echo "FAIL $name"
    fi
done
echo "$passed passed, $(($# - passed)) failed"
[ "$passed" = $# ]
