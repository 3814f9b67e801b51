#!/usr/bin/env bash
# The inference object against the training program, the interpreter, compilers, sanitizers, threads and misuse.
# Usage: run.sh MLC [TEST...]. What cannot be tested here is said: SKIP.
set -u
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/object-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cp "$here"/*.net "$here/../../samples/digits/optdigits.csv" . || exit 2
head -n 100 optdigits.csv >few.csv
failures=0
flags="-O2 -fopenmp-simd -ffp-contract=off -fno-math-errno -fno-trapping-math"
strict="-Wall -Wextra -Werror"

fail() { echo "FAIL $test_name: $*"; failures=$((failures + 1)); }
skip() { echo "SKIP: $test_name: $*"; }
must() { "$@" >said.txt 2>&1 || { fail "$*: $(tail -n 5 said.txt)"; return 1; }; }
has() { command -v "$1" >/dev/null 2>&1; }

outputs() {
    case $1 in
    bn | bn2) echo 'X(logits, 10) X(shares, 10)' ;;
    mlp) echo 'X(logits, 10) X(middle, 1)' ;;
    residual) echo 'X(digit, 1)' ;;
    esac
}

# rows_program COMPILER NET OBJECT RESULT OPTIONS...: links rows.c with an object.
rows_program() {
    local cc=$1 net=$2 object=$3 result=$4
    shift 4
    must $cc -std=c11 -DMODEL="$net" -DHEADER="\"$net.h\"" -DINPUT=image -DWIDTH=64 -DFIELD=columns_0_to_63 \
        "-DOUTPUTS(X)=$(outputs "$net")" -I. "$@" "$here/rows.c" "$object" -lm -o "$result"
}

# Trains each net a little, and makes its object with the weights.
prepare() {
    test_name=prepare
    local net
    sed 's/^net bn$/net bn2/' bn.net >bn2.net
    for net in bn mlp residual; do
        must "$mlc" compile $net.net && must ./$net-train --quiet --run run-$net --save $net.safetensors || exit 1
        must "$mlc" compile $net.net --emit obj,c --batch 64 --weights $net.safetensors || exit 1
    done
    must "$mlc" compile bn2.net --emit obj,c --batch 64 --weights bn.safetensors || exit 1
    must cc -O1 $strict "$here/near.c" -lm -o near || exit 1
}

# The bits of --predict, and so of --eval, whatever the batch that the rows come in.
test_bits() {
    local net batch
    for net in bn mlp residual; do
        must ./$net-train --predict optdigits.csv --weights $net.safetensors --out all-$net.csv || return
        # The class stands before numbers that it may be taken from.
        case $net in
        bn) tail -n +2 all-bn.csv | cut -d, -f2-11,13-22 >trainer-bn.csv ;;
        mlp) tail -n +2 all-mlp.csv | cut -d, -f2- >trainer-mlp.csv ;;
        *) tail -n +2 all-$net.csv >trainer-$net.csv ;;
        esac
        rows_program gcc $net $net.o rows-$net -O1 $strict || return
        for batch in 1 7 64; do
            ./rows-$net optdigits.csv $batch >object-$net.csv || fail "$net by $batch"
            cmp -s trainer-$net.csv object-$net.csv || fail "$net by $batch: $(diff trainer-$net.csv object-$net.csv | head -n 4)"
        done
        [ "$(wc -l <object-$net.csv)" = 1797 ] || fail "$net: $(wc -l <object-$net.csv) rows"
    done
}

# Words become codes as training numbered them, classes have their names, fields by their columns.
test_table() {
    awk 'BEGIN {
        split("fern moss reed", kind, " "); split("red green blue", colour, " ")
        print "height,width,colour,depth,kind"
        for (i = 0; i < 120; i++) {
            x = (x * 1103 + 12345) % 65536; k = x % 3 + 1
            printf "%.2f,%.2f,%s,%d,%s\n", k + x % 100 / 150, -k + x % 37 / 40, colour[int(x / 7) % 3 + 1], int(x / 11) % 10, kind[k]
        } }' >plants.csv
    must "$mlc" compile table.net && must ./table-train --quiet --run run-table || return
    must "$mlc" compile table.net --emit obj --weights run-table/weights/best.safetensors || return
    must gcc -std=c11 $strict -Wconversion -I. "$here/table.c" table.o -lm -o table || return
    ./table plants.csv >object-table.csv || fail "the object"
    ./table-train --predict plants.csv --weights run-table/weights/best.safetensors | tail -n +2 >trainer-table.csv
    cmp -s trainer-table.csv object-table.csv || fail "$(diff trainer-table.csv object-table.csv | head -n 4)"
    [ "$(wc -l <object-table.csv)" = 120 ] || fail "$(wc -l <object-table.csv) rows"
}

# The accuracy that --eval tells is that of the object's answers.
test_eval() {
    local told counted
    told=$(./bn-train --eval --weights bn.safetensors | awk '$1 == "train" || $1 == "valid" { gsub(",", ""); rows += $2; right += $2 * $4 } END { print right / rows }')
    counted=$(paste -d, trainer-bn.csv optdigits.csv | awk -F, '{ best = 1; for (i = 2; i <= 10; i++) if ($i > $best) best = i; right += best - 1 == $NF } END { print right / NR }')
    awk -v a="$told" -v b="$counted" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-3 && d > -1e-3) }' || fail "--eval tells $told, the answers are right in $counted"
}

# The interpreter computes in its own order: 2e-6 of the largest number.
test_interpreter() {
    local net
    for net in bn mlp residual; do
        head -n 20 optdigits.csv | cut -d, -f1-64 | awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) $i = $i / 16 } 1' >images.csv
        must "$mlc" run $net.net image=images.csv --weights $net.safetensors --out ran || continue
        must "$mlc" run $net.net image=images.csv --weights $net.safetensors --out said --interpret || continue
        ./near ran/output_0.npy said/output_0.npy 2e-6 || fail "$net"
    done
}

# The header and the text in every dialect, with warnings as errors.
test_warnings() {
    local cc net s
    for net in bn mlp residual; do
        printf '#include "%s.h"\nint main(void) { return (int)%s_arena_bytes(0); }\n' $net $net >user.c
        cp user.c user.cpp
        for cc in gcc clang; do
            has $cc || { skip "no $cc"; continue; }
            for s in c11 $([ $net = bn ] && echo c99 c17); do must $cc -std=$s $strict -Wconversion -Wpedantic -fsyntax-only user.c; done
            must $cc -std=gnu11 $flags $strict -Wpedantic -march=x86-64-v3 -c $net.c -o warned.o
            must $cc -std=gnu11 -O0 $strict -Wpedantic -c $net.c -o warned.o
        done
        for cc in g++ clang++; do
            has $cc || { skip "no $cc"; continue; }
            for s in c++17 $([ $net = bn ] && echo c++98 c++11 c++20); do must $cc -std=$s $strict -Wconversion -Wpedantic -fsyntax-only user.cpp; done
        done
    done
}

# The example in the header is a program.
test_example() {
    sed -n '/Example:/,/^#ifndef/s|^//   ||p' bn.h >example.c
    must gcc -std=c11 $strict -I. example.c bn.o -lm -o example && must ./example
}

test_same_bytes() {
    mkdir -p elsewhere/deeper && cp bn.net bn.safetensors elsewhere/deeper
    must env LC_ALL=C "$mlc" compile elsewhere/deeper/bn.net --emit c --batch 64 --weights bn.safetensors -o elsewhere/deeper/bn.c
    cmp bn.c elsewhere/deeper/bn.c || fail "the text depends on the folder"
    must "$mlc" compile bn.net --emit train_c -o here.c
    (cd elsewhere/deeper && LC_ALL=${1:-de_DE.UTF-8} LANG=de_DE.UTF-8 "$mlc" compile bn.net --emit train_c -o there.c) || fail "there"
    cmp here.c elsewhere/deeper/there.c || fail "the training program depends on the folder or the locale"
    (cd elsewhere/deeper && "$mlc" compile bn.net --emit obj --batch 64 --weights bn.safetensors) || fail "object there"
    cmp bn.o elsewhere/deeper/bn.o || fail "the object depends on the folder"
}

# No variables, no pointers that a linker would write to, nothing from outside but libm and memory functions; all public names
# begin with the model's.
test_symbols() {
    local net cc undefined
    for net in bn mlp residual; do
        for cc in gcc clang; do
            has $cc || continue
            must $cc -std=gnu11 $flags -fPIC -march=x86-64-v3 -c $net.c -o pic.o || continue
            nm pic.o | grep -E ' [BbDdCcSsGg] ' && fail "$net by $cc has variables"
            readelf -S -W pic.o | grep -E ' \.(data|bss|tdata|tbss|init_array|ctors)[^ ]* ' |
                awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\./ && $(i + 4) != "000000") print $i, $(i + 4) }' | grep . && fail "$net by $cc has data"
            nm --defined-only --extern-only pic.o | awk -v p="$net" 'index($3, p "_") != 1 { print; bad = 1 } END { exit bad }' || fail "$net by $cc: names"
            undefined=$(nm --undefined-only pic.o | awk '{ print $2 }' |
                grep -vE '^(mem(cpy|set|move|cmp)|_GLOBAL_OFFSET_TABLE_|(floor|ceil|rint|round|trunc|fmod|sqrt|exp|expm1|log|log1p|sin|cos|tan|tanh|erf|pow)f?)$')
            [ -z "$undefined" ] || fail "$net by $cc asks for $undefined"
        done
    done
}

test_misuse() {
    mkdir -p four
    must "$mlc" compile bn.net --emit c --batch 4 --weights bn.safetensors -o four/bn.c || return
    (cd four && must gcc -std=gnu11 -g $flags $strict -fsanitize=address,undefined -fno-sanitize-recover -I. "$here/misuse.c" bn.c -lm -o misuse && ./misuse) || fail "with sanitizers"
    (cd four && must gcc -std=gnu11 $flags $strict -march=native -frounding-math -I. "$here/misuse.c" bn.c -lm -o misuse && ./misuse) || fail "native"
    # The same where the weights come from the caller.
    mkdir -p given
    must "$mlc" compile bn.net --emit weights --batch 4 --weights bn.safetensors -o given/bn.weights
    must "$mlc" compile bn.net --emit c --batch 4 -o given/bn.c
    (cd given && must gcc -std=gnu11 -g $flags $strict -DGIVEN -fsanitize=address,undefined -fno-sanitize-recover -I. "$here/misuse.c" bn.c -lm -o misuse && ./misuse) || fail "weights of the caller"
}

# Weights that are not the net's are refused, with the first difference; other names and types of the same are taken.
test_weights() {
    must cc -O1 $strict "$here/weights.c" -o weights || return
    local fault
    refused() { # kind, text
        ./weights bn.safetensors "$1" >bad.safetensors || fail "weights $1"
        "$mlc" compile bn.net --emit obj --weights bad.safetensors -o bad.o >said.txt 2>&1 && fail "$1: taken"
        grep -qF -- "$2" said.txt || fail "$1: $(cat said.txt)"
        [ ! -e bad.o ] || fail "$1: an object was made"
    }
    taken() {
        ./weights bn.safetensors "$1" >other.safetensors || fail "weights $1"
        must "$mlc" compile bn.net --emit weights --weights other.safetensors -o other.weights && cmp -s bn.weights other.weights || fail "$1"
    }
    refused missing head.bias
    refused extra head.extra
    refused shape '(10, 319)'
    refused rank head.weight
    refused type head.weight
    refused nan head.weight
    refused infinite head.weight
    rm -f bad.o; refused cut bad.safetensors
    taken same
    taken prefix
    taken f64
}

test_sanitizers() {
    local net
    for net in bn mlp residual; do
        rows_program "gcc -g -O1 -fopenmp-simd -ffp-contract=off -march=native -fsanitize=address,undefined -fno-sanitize-recover" $net $net.c rows-sane || continue
        ./rows-sane few.csv 9 >sane.csv 2>sane.txt || fail "$net: $(head -n 5 sane.txt)"
        head -n 100 trainer-$net.csv | cmp -s - sane.csv || fail "$net: other bits with sanitizers"
    done
}

test_together() {
    must "$mlc" compile bn.net --emit obj,c --batch 4 --weights bn.safetensors || return
    must "$mlc" compile bn2.net --emit obj,c --batch 4 --weights bn.safetensors || return
    must "$mlc" compile mlp.net --emit obj,c --batch 4 --weights mlp.safetensors || return
    must gcc -std=gnu11 $strict -O1 -I. "$here/together.c" bn.o bn2.o mlp.o -lm -lpthread -o together && must ./together
    if echo 'int main(void) { return 0; }' >empty.c && gcc -fsanitize=thread empty.c -o empty 2>/dev/null && ./empty 2>/dev/null; then
        must gcc -std=gnu11 -g -O1 -fopenmp-simd -fsanitize=thread -I. "$here/together.c" bn.c bn2.c mlp.c -lm -lpthread -o together && must ./together
    else
        skip "no -fsanitize=thread here"
    fi
    has g++ && must g++ -std=c++17 $strict -Wconversion -I. "$here/linked.cpp" bn.o mlp.o -o linked && must ./linked
    has g++ || skip "no g++"
}

# The same model for other instruction sets: without FMA sums are rounded more often, and vectors of other widths add in
# another order: 5e-6 of the largest number. One instruction set gives the same bits on the processor and in the emulator.
test_targets() {
    local net target cc run
    for net in bn mlp residual; do
        head -n 100 trainer-$net.csv >native.csv
        for target in x86-64 x86-64-v3 aarch64; do
            cc=gcc run=
            if [ $target = aarch64 ] && [ "$(uname -m)" != aarch64 ]; then cc=aarch64-linux-gnu-gcc run=qemu-aarch64-static; fi
            if [ $target != aarch64 ] && [ "$(uname -m)" != x86_64 ]; then cc=x86_64-linux-gnu-gcc run=qemu-x86_64-static; fi
            if [ $target = x86-64-v3 ] && [ -z "$run" ] && ! grep -qw avx2 /proc/cpuinfo; then skip "no AVX2"; continue; fi
            has $cc || { skip "$target: no $cc"; continue; }
            [ -z "$run" ] || has $run || { skip "$target: no $run"; continue; }
            mkdir -p $target
            must "$mlc" compile $net.net --emit obj --batch 64 --target $target --weights $net.safetensors -o $target/$net.o || continue
            rows_program $cc $net $target/$net.o $target/rows-$net -O1 $strict -static || continue
            $run $target/rows-$net few.csv 64 >$target/$net.csv || fail "$target $net"
            echo "  $target $net:" "$(./near native.csv $target/$net.csv 5e-6)"
            ./near native.csv $target/$net.csv 5e-6 >/dev/null || fail "$target $net"
        done
        if [ "$(uname -m)" = x86_64 ] && has qemu-x86_64-static; then
            qemu-x86_64-static -cpu qemu64 x86-64/rows-$net few.csv 64 >emulated.csv || fail "qemu64 $net"
            cmp -s x86-64/$net.csv emulated.csv || fail "qemu64 $net: other bits than on the processor"
        else
            skip "no qemu-x86_64-static"
        fi
    done
}

# Training programs for processors without AVX-512, and without any AVX.
test_training_targets() {
    local target
    [ "$(uname -m)" = x86_64 ] || { skip "not on x86-64"; return; }
    must ./bn-train --quiet --steps 8 --log native.jsonl --run native-run || return
    for target in x86-64 x86-64-v3; do
        if [ $target = x86-64-v3 ] && ! grep -qw avx2 /proc/cpuinfo; then skip "no AVX2"; continue; fi
        must "$mlc" compile bn.net --target $target -o $target-train || continue
        must ./$target-train --quiet --steps 8 --log $target.jsonl --run $target-run || continue
        cut -d: -f3 native.jsonl | cut -d, -f1 >native.txt
        cut -d: -f3 $target.jsonl | cut -d, -f1 >$target.txt
        echo "  $target:" "$(./near native.txt $target.txt 1e-4)"
        ./near native.txt $target.txt 1e-4 >/dev/null || fail "$target: other losses"
    done
    if has qemu-x86_64-static; then
        must qemu-x86_64-static -cpu qemu64 ./x86-64-train --quiet --steps 8 --log qemu.jsonl --run qemu-run --threads 1 &&
            { cmp -s x86-64.jsonl qemu.jsonl || fail "x86-64: other bits in the emulator"; }
    else
        skip "no qemu-x86_64-static"
    fi
}

prepare
for test_name in ${*:-bits table eval interpreter warnings example same_bytes symbols misuse weights sanitizers together targets training_targets}; do
    before=$failures
    "test_$test_name"
    [ $before = $failures ] && echo "ok   $test_name"
done
exit $((failures > 0))
