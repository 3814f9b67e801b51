#!/usr/bin/env bash
# Trains samples as their READMEs say, or a shortened form, and looks at the figure that they should reach.
# Usage: run.sh MLC [NAME ...]
set -euo pipefail
samples=$(cd "$(dirname "$0")/../../samples" && pwd)
mlc=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# name, part and column of the final table, how it compares, bound; compile options | training options
rows='penguins    test  4 < 0.23 | |
tumours     test  4 > 0.95 | |
autoencoder valid 4 < 0.065| |
resnet18    valid 4 > 0.80 | -D width=8 | --epochs 4'

# The answers to a few rows are there, in the words of the data.
answers() {
    case $1 in
    penguins) head -n 4 penguins.csv >few.csv && ./penguins-train --run run2 --weights run/weights/best.safetensors --predict few.csv | tee answers.txt &&
        [ "$(head -n 1 answers.txt)" = mass ] && [ "$(wc -l <answers.txt)" = 4 ] ;;
    tumours) head -n 4 tumours.csv >few.csv && ./tumours-train --weights run/weights/best.safetensors --predict few.csv | tee answers.txt &&
        [ "$(head -n 1 answers.txt)" = kind,logits.benign,logits.malignant ] && [ "$(cut -d, -f1 answers.txt | grep -c malignant)" -ge 2 ] ;;
    esac
}

train() {
    local name=$1 part=$2 column=$3 sign=$4 bound=$5 compile=$6 options=$7 value
    mkdir -p "$work/$name" "$work/digits"
    cp "$samples/digits/optdigits.csv" "$work/digits"
    cp "$samples/$name"/* "$work/$name"
    cd "$work/$name"
    # shellcheck disable=SC2086
    "$mlc" compile "$name.net" $compile && ./"$name-train" --run run --quiet $options >out.txt 2>err.txt || { cat err.txt; return 1; }
    value=$(awk -v part="$part" -v column="$column" '$1 == part { print $column }' out.txt)
    echo "$name: $value on the $part part, should be $sign $bound"
    awk "BEGIN { exit !($value $sign $bound) }" && answers "$name" || return 1
    "$samples/curve.sh" run train_loss,valid_loss >curve.svg && grep -q '<polyline' curve.svg
}

passed=0 failed=0
while IFS='|' read -r row compile options; do
    # shellcheck disable=SC2086
    set -- $row "$@"
    name=$1 part=$2 column=$3 sign=$4 bound=$5
    shift 5
    case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
    if train "$name" "$part" "$column" "$sign" "$bound" "$compile" "$options"; then
        passed=$((passed + 1))
    else
        echo "FAIL $name"
        failed=$((failed + 1))
    fi
done <<<"$rows"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
