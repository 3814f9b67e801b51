#!/usr/bin/env bash
# Training programs as the compiler makes them (batch norm and dropout; residual with clipping): the same bits for any number of
# threads, after a stop and after kill -9 at random moments; signals, divergence, memory.
# Usage: generated.sh MLC [TEST...]
set -u
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/generated-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cp "$here"/../object/bn.net "$here"/../object/residual.net "$here/../../samples/digits/optdigits.csv" . || exit 2
failures=0

fail() { echo "FAIL $test_name: $*"; failures=$((failures + 1)); }
skip() { echo "SKIP: $test_name: $*"; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
length() { case $1 in bn) echo 5 ;; *) echo 2 ;; esac; }       # epochs

# straight NET SEED: a run without a stop, on one thread, once.
straight() {
    [ -d "straight-$1-$2" ] && return
    ./$1-train --run "straight-$1-$2" --seed $2 --epochs "$(length $1)" --quiet --threads 1 --set save='9 steps' \
        --log "straight-$1-$2.jsonl" >/dev/null 2>straight.txt || fail "straight: $(cat straight.txt)"
}

# ended NET SEED RUN: the run has come to what the straight one came to.
ended() {
    local part
    for part in best last; do
        same "straight-$1-$2/weights/$part.safetensors" "$3/weights/$part.safetensors"
    done
    same "straight-$1-$2.jsonl" "$3.jsonl"
    [ -z "$(ls "$3/weights" | grep tmp)" ] || fail "$3: temporaries are left"
}

# interrupted NET SEED THREADS SIGNAL: signals at random moments, resuming each time, until it ends.
interrupted() {
    local net=$1 seed=$2 threads=$3 signal=$4 run=cut-$1-$2-$3-$4 n=0 code=1 process
    straight $net $seed
    while [ $code != 0 ]; do
        if [ -e $run/weights/last.safetensors ]; then
            ./$net-train --resume $run --quiet --threads $threads --log $run.jsonl >cut.txt 2>&1 &
        else
            rm -rf $run
            ./$net-train --run $run --seed $seed --epochs "$(length $net)" --quiet --threads $threads --log $run.jsonl \
                --set save='9 steps' >cut.txt 2>&1 &
        fi
        process=$!
        [ $n -lt 6 ] && { sleep 0.$(printf %02d $((RANDOM % 40 + 3))); kill -$signal $process 2>/dev/null; }
        wait $process 2>/dev/null
        code=$?
        case $code in
        0) ;;
        137) [ $signal = KILL ] || { fail "$run: exit code 137"; return; } ;;
        4) grep -q "go on with: ./$net-train --resume $run" cut.txt || { fail "$run: $(cat cut.txt)"; return; } ;;
        2) grep -q 'has done all its' cut.txt && code=0 || { fail "$run: $(cat cut.txt)"; return; } ;;
        *) # a stop before the loop began is the signal's own
            [ $code = 143 ] || { fail "$run: exit code $code: $(cat cut.txt)"; return; } ;;
        esac
        n=$((n + 1))
    done
    ended $net $seed $run
    echo "  $run: $((n - 1)) stops"
}

test_threads() {
    local net threads
    for net in bn residual; do
        straight $net 3
        for threads in 2 8; do
            ./$net-train --run $net-$threads --seed 3 --epochs "$(length $net)" --quiet --threads $threads --set save='9 steps' \
                --log $net-$threads.jsonl >/dev/null 2>&1 || fail "$net with $threads threads"
            ended $net 3 $net-$threads
        done
    done
}

test_stop() {
    RANDOM=5
    interrupted bn 3 1 TERM
    interrupted bn 4 2 TERM
    interrupted residual 3 8 TERM
    interrupted residual 5 2 INT
}

test_kill() {
    RANDOM=11
    interrupted bn 3 2 KILL
    interrupted bn 6 8 KILL
    interrupted residual 3 1 KILL
    interrupted residual 7 8 KILL
}

# The first Ctrl-C waits for the step, the second does not.
test_second_signal() {
    cat >slow.net <<'END'
net slow

input image: f32[N, 64]
h = relu(dense(image, 3000))
h = relu(dense(h, 3000))
output logits = dense(h, 10)

train {
    target label: i32[N]
    loss = cross_entropy(logits, label)
    data csv("optdigits.csv") {
        image = columns(0..63) / 16
        label = column(64)
    }
    batch     = 1500
    steps     = 1000
    optimizer = sgd(lr = 0.01)
}
END
    "$mlc" compile slow.net || { fail "compile"; return; }
    local process begun ended
    ./slow-train --run slow --quiet --threads 1 >slow.txt 2>&1 &
    process=$!
    while [ ! -s slow/config.yaml ]; do sleep 0.02; done
    sleep 0.3
    kill -INT $process
    sleep 0.05
    kill -INT $process
    wait $process
    local code=$?
    [ $code = 130 ] || fail "two signals: exit code $code: $(cat slow.txt)"
    ./slow-train --run slow2 --quiet --threads 1 >slow.txt 2>&1 &
    process=$!
    while [ ! -s slow2/config.yaml ]; do sleep 0.02; done
    sleep 0.3
    kill -INT $process
    wait $process
    code=$?
    [ $code = 4 ] && grep -q 'everything is saved, go on with: ./slow-train --resume slow2' slow.txt || fail "one signal: exit code $code: $(cat slow.txt)"
}

# What is not finite ends the run before the update: the step and the layer are named, the weights before it are kept.
test_divergence() {
    local code
    ./bn-train --run good --epochs 1 --quiet >/dev/null 2>&1 || fail "good"
    ./bn-train --run wild --quiet --steps 40 --set optimizer.lr=1e30 >wild.txt 2>&1
    code=$?
    [ $code = 5 ] || fail "exit code $code"
    grep -Eq 'step [0-9]+: (unit[12]|head|the loss)[a-z0-9.]* \([a-z_]+\) gave a value that is not finite' wild.txt || fail "$(cat wild.txt)"
    ./bn-train --eval --weights wild/weights/last.safetensors >wild.txt 2>&1 || fail "the kept weights: $(cat wild.txt)"
    sed '30,60s/^[0-9]*,/3e38,/' optdigits.csv >huge.csv
    ./bn-train --run huge --quiet --set data.path=huge.csv >huge.txt 2>&1
    code=$?
    [ $code = 5 ] || fail "values that are too large: exit code $code: $(cat huge.txt)"
    grep -Eq 'step [0-9]+: unit1\.' huge.txt || fail "values that are too large: $(cat huge.txt)"
}

# Ten steps or a hundred: the same number of calls for memory.
test_memory() {
    cc -shared -fPIC -O1 "$here/counter.c" -o counter.so || { fail "counter"; return; }
    local net steps
    for net in bn residual; do
        for steps in 10 100; do
            LD_PRELOAD=$PWD/counter.so ./$net-train --run memory-$net-$steps --quiet --steps $steps --threads 2 \
                --set evaluate='1000 epochs' --log memory.jsonl >/dev/null 2>memory.txt || fail "$net: $(cat memory.txt)"
            grep '^calls for memory: ' memory.txt >memory-$net-$steps.txt || fail "$net: nothing was counted"
        done
        cmp memory-$net-10.txt memory-$net-100.txt || fail "$net: steps ask for memory"
    done
    echo "  $(cat memory-bn-100.txt)"
}

test_name=prepare
for net in bn residual; do "$mlc" compile $net.net || { fail "$net"; exit 1; }; done
for test_name in ${*:-threads stop kill second_signal divergence memory}; do
    before=$failures
    "test_$test_name"
    [ $before = $failures ] && echo "ok   $test_name"
done
exit $((failures > 0))
