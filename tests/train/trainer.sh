#!/bin/bash
# Tests of the trainer as a whole: same bits, resuming, faults, messages. Builds two training programs by hand-written model
# (tests/unit/trainer_model.c) in a folder of its own. Usage: tests/train/trainer.sh [TEST…]; TRAINER_LIB may name a built runtime.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/trainer-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() { echo "FAIL $test_name: $*"; failures=$((failures + 1)); }

# expect CODE 'TEXT' COMMAND…: the exit code, and a piece of what is said on standard error.
expect() {
    local code=$1 text=$2 got
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    [ $got = "$code" ] || fail "'$*' ended with $got, not $code: $(tail -n 2 err.txt)"
    [ -z "$text" ] || grep -qF -- "$text" err.txt out.txt || fail "'$*' does not say '$text': $(cat err.txt)"
}

same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

last_digest() { sed -n 's/^  last .*digest //p' "$1"; }

build() {
    local cc=${CC:-cc} flags="-std=c11 -O2 -g -Wall -Wextra ${CFLAGS:-}" model=$root/tests/unit/trainer_model.c
    if [ -z "${TRAINER_LIB:-}" ]; then
        mkdir objects
        for file in "$root"/runtime/*.c; do
            $cc $flags -c "$file" -o "objects/$(basename "$file" .c).o" || exit 1
        done
        TRAINER_LIB=$work/runtime.a
        ar rcs "$TRAINER_LIB" objects/*.o
    fi
    $cc $flags "$model" "$TRAINER_LIB" -lz -lm -lpthread -o digits || exit 1
    $cc $flags -DSTRINGS "$model" "$TRAINER_LIB" -lz -lm -lpthread -o words || exit 1
    $cc $flags -DWIDE "$model" "$TRAINER_LIB" -lz -lm -lpthread -o wide || exit 1
    $cc $flags -DCOUNT_ALLOCATIONS "$model" "$root/tests/unit/trainer_alloc.c" "$TRAINER_LIB" -lz -lm -lpthread -o counting || exit 1
    $cc $flags -DSTRINGS "$model" "$root/tests/unit/trainer_alloc.c" "$TRAINER_LIB" -lz -lm -lpthread -o counting-words || exit 1
    $cc $flags "$model" "$root/tests/unit/trainer_fault.c" "$TRAINER_LIB" -lz -lm -lpthread -o faulty || exit 1
    cp "$root/samples/digits/optdigits.csv" digits.csv
}

test_learns() {
    expect 0 'best weights' ./digits --epochs 60 --set optimizer.lr=1e-2 --quiet
    local accuracy
    accuracy=$(awk '$1 == "test" { print $4 }' out.txt)
    awk "BEGIN { exit !($accuracy > 0.93) }" || fail "test accuracy is $accuracy"
    for file in config.yaml model.net command.txt log.jsonl metrics.csv README.md report.html split.csv weights/best.safetensors weights/last.safetensors; do
        [ -s runs/digits-1/$file ] || fail "runs/digits-1/$file is missing"
    done
    [ "$(readlink runs/latest)" = digits-1 ] || fail "runs/latest"
}

test_benchmark() {
    mkdir bench
    (cd bench && ../digits --benchmark 5 --json --threads 1) >out.txt 2>err.txt || fail "--benchmark: $(cat err.txt)"
    grep -qxE '\{"model":"digits","threads":1,"batch":[0-9]+,"steps":5(,"(start|min|median|p99)_ms":[0-9.e-]+){4},"planned_bytes":[0-9]+,"peak_kb":[0-9]+\}' out.txt ||
        fail "--json: $(cat out.txt)"
    rmdir bench || fail "--benchmark wrote a file"
    expect 0 '7 steps of' ./digits --benchmark 7
    expect 2 'leave --eval out' ./digits --benchmark 7 --eval
    expect 2 '--json goes with --benchmark' ./digits --json
    expect 5 'the loss is' ./digits --benchmark 1000 --set optimizer.lr=1e30
}

test_threads() {
    local threads
    for threads in 1 2 8; do
        ./digits --run t$threads --threads $threads --quiet --log t$threads.jsonl --save t$threads.st >t$threads.txt 2>&1 || fail "$threads threads"
    done
    for threads in 2 8; do
        same t1.jsonl t$threads.jsonl
        [ "$(last_digest t1.txt)" = "$(last_digest t$threads.txt)" ] || fail "weights with $threads threads"
    done
    [ "$(wc -l <t1.jsonl)" = 115 ] || fail "a line a step"
    grep -qxE '\{"step":1,"loss":[0-9.]+,"lr":[0-9.e-]+\}' t1.jsonl || fail "form of the log: $(head -n 1 t1.jsonl)"
}

# Stopped by SIGTERM in the middle of an epoch, then resumed: the same curve and weights as without a stop.
test_stop_and_resume() {
    ./digits --run whole --epochs 400 --quiet --log whole.jsonl >whole.txt 2>&1 || fail "whole run"
    ./digits --run parts --epochs 400 --quiet --log parts.jsonl >parts.txt 2>&1 &
    local process=$!
    while [ ! -s parts/weights/last.safetensors ]; do sleep 0.01; done
    kill -TERM $process
    wait $process
    [ $? = 4 ] || fail "SIGTERM: exit code"
    grep -q 'go on with: ./digits --resume parts' parts.txt || fail "SIGTERM: message"
    expect 0 'best weights' ./digits --resume parts --quiet --log parts.jsonl
    [ "$(last_digest whole.txt)" = "$(last_digest out.txt)" ] || fail "weights after resuming"
    same whole.jsonl parts.jsonl
    same <(cut -d, -f1-6 whole/metrics.csv) <(cut -d, -f1-6 parts/metrics.csv)
    cmp -s <(grep -v seconds whole/log.jsonl) <(grep -v seconds parts/log.jsonl) || fail "log.jsonl after resuming"
    same whole/weights/last.safetensors parts/weights/last.safetensors
    same whole/weights/best.safetensors parts/weights/best.safetensors
    awk -F, 'NR > 1 { bad += $NF < before; before = $NF } END { exit bad > 0 }' parts/metrics.csv || fail "the time went back when resuming"
    expect 2 'has done all its' ./digits --resume parts
    expect 0 'best weights' ./digits --resume parts --epochs 401 --quiet
}

# Killed 20 times at random moments; each time it goes on from the newest checkpoint.
test_kill() {
    [ -s whole.txt ] || ./digits --run whole --epochs 400 --quiet >whole.txt 2>&1
    local n=0 process code
    RANDOM=7
    while [ $n -lt 20 ]; do
        if [ -e killed/weights/last.safetensors ]; then
            ./digits --resume killed --quiet --log killed.jsonl >killed.txt 2>&1 &
        else
            rm -rf killed
            ./digits --run killed --epochs 400 --quiet --set save='7 steps' --log killed.jsonl >killed.txt 2>&1 &
        fi
        process=$!
        sleep 0.0$((RANDOM % 9 + 1))
        kill -9 $process 2>/dev/null
        wait $process 2>/dev/null
        code=$?
        [ $code = 137 ] || [ $code = 0 ] || fail "round $n ended with $code: $(cat killed.txt)"
        [ $code = 0 ] && break
        n=$((n + 1))
    done
    [ $code = 0 ] || ./digits --resume killed --quiet --log killed.jsonl >killed.txt 2>&1 || fail "the last round: $(cat killed.txt)"
    [ "$(last_digest whole.txt)" = "$(last_digest killed.txt)" ] || fail "weights after $n kills: $(cat killed.txt)"
    [ ! -s whole.jsonl ] || same whole.jsonl killed.jsonl
    [ -z "$(ls killed/weights | grep tmp)" ] || fail "temporaries are left"
    cmp -s <(grep -v seconds whole/log.jsonl) <(grep -v seconds killed/log.jsonl) || fail "log.jsonl after $n kills"
    echo "  $n kills"
}

# Killed at every system call of a resumed run that evaluates and saves twice, one after the other, and in the middle of every
# write: what is there afterwards loads, and goes on to the same weights.
test_kill_points() {
    local what n code points=0
    ./digits --run base --epochs 2 --quiet >/dev/null 2>&1 || fail "base"
    cp -r base straight
    ./digits --resume straight --epochs 4 --quiet >straight.txt 2>&1 || fail "straight"
    for what in open:KILL write:KILL write:TORN fsync:KILL rename:KILL ftruncate:KILL close:KILL; do
        for ((n = 1; n < 1000; n++)); do
            rm -rf point
            cp -r base point
            { FAULT=$what:$n ./faulty --resume point --epochs 4 --quiet >point.txt 2>&1; } 2>/dev/null
            code=$?
            [ $code = 0 ] || [ $code = 137 ] || fail "$what $n: exit code $code: $(cat point.txt)"
            [ $code = 0 ] && break
            points=$((points + 1))
            ./digits --resume point --epochs 4 --quiet >point.txt 2>&1 ||
                grep -q 'has done all its' point.txt || { fail "$what $n: $(cat point.txt)"; continue; }
            grep -q 'has done all its' point.txt && continue
            [ "$(last_digest straight.txt)" = "$(last_digest point.txt)" ] || fail "$what $n: other weights"
            same straight/weights/last.safetensors point/weights/last.safetensors
            same <(cut -d, -f1-6 straight/metrics.csv) <(cut -d, -f1-6 point/metrics.csv)
        done
    done
    [ $points -ge 100 ] || fail "only $points points"
    echo "  $points points"
}

# Every system call of such a run fails once, each with several causes: an error that is said or success, no temporary left,
# and the old checkpoint or the new one, whole.
test_failed_calls() {
    local what code n points=0
    [ -d base ] || ./digits --run base --epochs 2 --quiet >/dev/null 2>&1
    for what in write:ENOSPC write:EDQUOT write:EINTR write:SHORT fsync:EIO rename:EACCES open:EMFILE open:EROFS close:EIO \
        mmap:ENOMEM ftruncate:EIO; do
        for ((n = 1; n < 1000; n++)); do
            rm -rf call
            cp -r base call
            FAULT=$what:$n ./faulty --resume call --epochs 3 --quiet >call.txt 2>&1
            code=$?
            [ $code -le 1 ] || fail "$what $n: exit code $code: $(cat call.txt)"
            [ $code = 0 ] || grep -q 'error:' call.txt || fail "$what $n: no message: $(cat call.txt)"
            ls call/weights | grep -q tmp && fail "$what $n: a temporary is left"
            ./digits --eval --weights call/weights/last.safetensors >eval.txt 2>&1 || fail "$what $n: $(cat call.txt eval.txt)"
            grep -qx fault call.txt || break
            points=$((points + 1))
        done
    done
    [ $points -ge 100 ] || fail "only $points points"
    echo "  $points points"
}

test_rules() {
    expect 0 'no better for long enough' ./digits --run rule --epochs 300 --set stop='4 epochs' --set optimizer.lr=1e-2
    [ "$(tail -n 1 rule/metrics.csv | cut -d, -f2)" -lt 300 ] || fail "it did not stop early"
    expect 0 'by loss' ./digits --run lowest --epochs 3 --set keep='lowest loss' --quiet
    expect 0 'by loss' ./digits --run by-steps --epochs 2 --set keep=loss --set evaluate='10 steps' --quiet
    [ "$(cut -d, -f1 by-steps/metrics.csv | tr '\n' ' ')" = 'step 10 20 30 40 46 ' ] || fail "evaluations: $(cut -d, -f1 by-steps/metrics.csv)"
    grep -q '^evaluate: "10 steps"  # --set' by-steps/config.yaml || fail "config.yaml"
}

test_nan() {
    expect 5 'step 2: fc2 (linear)' ./digits --run nan --set optimizer.lr=1e30 --set schedule.warmup='1 step' --quiet
    expect 0 '' ./digits --run good --epochs 2 --quiet
    cp -r good bad
    expect 5 'step 48' ./digits --resume bad --epochs 4 --set optimizer.lr=1e30 --quiet
    ./digits --eval --weights bad/weights/last.safetensors --quiet >/dev/null || fail "weights before the step are not good"
    same good/weights/best.safetensors bad/weights/best.safetensors
}

test_checkpoints() {
    expect 0 '' ./digits --run own --epochs 2 --quiet
    expect 0 '' ./wide --run other --epochs 1 --quiet
    expect 1 "'fc1.weight' has the shape (20, 64), the model's has (16, 64)" ./digits --eval --weights other/weights/best.safetensors
    expect 1 'another model' ./digits --resume other --epochs 9
    cp -r own cut
    head -c 5000 own/weights/last.safetensors >cut/weights/last.safetensors
    expect 1 'cut/weights/last.safetensors' ./digits --resume cut --epochs 3
    cp -r own flipped
    printf 'X' | dd of=flipped/weights/last.safetensors bs=1 seek=6000 conv=notrunc 2>/dev/null
    expect 1 'flipped/weights/last.safetensors' ./digits --resume flipped --epochs 3
    expect 1 'begin with it: --weights' bash -c 'cp own/weights/best.safetensors cut/weights/last.safetensors; ./digits --resume cut --epochs 3'
    expect 0 'are from own/weights/best' ./digits --weights own/weights/best.safetensors --epochs 1 --run again
    expect 1 'own holds a run already' ./digits --run own
    sed 1d digits.csv >fewer.csv
    expect 1 'the data are not those' ./digits --resume own --epochs 3 --set data.path=fewer.csv
    expect 2 'a run keeps its seed' ./digits --resume own --epochs 3 --seed 8
    expect 1 'there is no such run' ./digits --resume nowhere
}

test_init_only() {
    expect 0 'initial weights' ./digits --init-only a.st
    expect 0 '' ./digits --init-only b.st --threads 2
    same a.st b.st
    ./digits --weights a.st --run from-file --quiet --log from-file.jsonl >/dev/null
    ./digits --run from-seed --quiet --log from-seed.jsonl >/dev/null
    same from-file.jsonl from-seed.jsonl
    expect 0 '' ./digits --steps 3 --no-shuffle --save c.st --run three --quiet
    [ -s c.st ] || fail "--save"
    expect 0 'all is well' ./digits --dry-run
}

# split.csv names the part of each row: as many as the table says, and the same for the same seed.
test_split() {
    expect 0 '' ./digits --run split1 --epochs 1 --quiet
    [ "$(head -n 1 split1/split.csv)" = row,part ] || fail "head"
    [ "$(tail -n 1 split1/split.csv | cut -d, -f1)" = "$(($(wc -l <digits.csv) - 1))" ] || fail "the last row is $(tail -n 1 split1/split.csv)"
    local part told counted
    for part in train valid test; do
        told=$(awk -v p=$part '$1 == p { gsub(",", ""); print $2 }' out.txt)
        counted=$(grep -c ",$part\$" split1/split.csv)
        [ "${told:-0}" = "$counted" ] || fail "$part: $told in the table, $counted in split.csv"
    done
    expect 0 '' ./digits --run split2 --epochs 1 --quiet
    same split1/split.csv split2/split.csv
    expect 0 '' ./digits --run split3 --epochs 1 --quiet --seed 9
    cmp -s split1/split.csv split3/split.csv && fail "another seed gives the same split"
}

test_predict() {
    expect 0 '' ./words --run w --epochs 40 --set optimizer.lr=1e-2 --quiet
    [ "$(ls w/weights | grep -c '^step-')" = 3 ] || fail "kept weights: $(ls w/weights)"
    head -n 50 digits.csv >rows.csv
    cut -d, -f1-64 rows.csv >bare.csv
    expect 0 '' ./words --predict rows.csv --weights w/weights/best.safetensors --out answers.csv
    expect 0 '' ./words --predict bare.csv --weights w/weights/best.safetensors
    same answers.csv out.txt
    [ "$(wc -l <answers.csv)" = 51 ] || fail "rows"
    [ "$(head -n 1 answers.csv | cut -d, -f1-3)" = label,logits.0,logits.1 ] || fail "head: $(head -n 1 answers.csv)"
    [ "$(paste -d, <(tail -n +2 answers.csv | cut -d, -f1) <(cut -d, -f65 rows.csv) | awk -F, '$1 == $2' | wc -l)" -ge 45 ] || fail "few are right"
    cut -d, -f1-30 rows.csv >narrow.csv
    expect 1 'column 63 is asked for, the file has columns 0 to 29' ./words --predict narrow.csv --weights w/weights/best.safetensors
    expect 0 'weights digest' ./words --eval --weights w/weights/best.safetensors
    expect 1 "words" ./words --predict rows.csv --weights missing-words
}

test_data() {
    sed '17s/^[0-9]*,/nan,/' digits.csv >bad.csv
    expect 1 'bad.csv:17' ./digits --set data.path=bad.csv
    sed '17s/[0-9]*$/12/' digits.csv >bad.csv
    expect 1 "bad.csv:17: 'label' is 12; it has to be 0 to 9" ./digits --set data.path=bad.csv
    sed '17s/,/;/' digits.csv >bad.csv
    expect 1 '17' ./digits --set data.path=bad.csv
    sed '17s/,.*/,x,1/' digits.csv >bad.csv
    expect 1 '17' ./digits --set data.path=bad.csv
    : >bad.csv
    expect 1 'bad.csv' ./digits --set data.path=bad.csv
    head -n 40 digits.csv >bad.csv
    expect 1 'a batch of 64 is larger than the training part (30 samples)' ./digits --set data.path=bad.csv
    expect 0 '' ./digits --set data.path=bad.csv --batch 16 --quiet --run small
    grep -v '3$' digits.csv >bad.csv
    expect 1 'classes was told 10' ./words --set data.path=bad.csv
    expect 1 'no-such.csv' ./digits --set data.path=no-such.csv
}

test_usage() {
    expect 2 "did you mean 'optimizer.lr'" ./digits --set optimizer.lrr=3
    expect 2 'mlc compile digits.net -D' ./digits --set loss=3
    expect 2 'mlc compile digits.net -D' ./digits --set classes=3
    expect 2 'did you mean --epochs' ./digits --epoch 3
    expect 2 '-D batch=65' ./digits --batch 65
    expect 2 'takes a duration' ./digits --set evaluate=often
    expect 2 'needs an argument' ./digits --run
    expect 0 'fingerprint' ./digits --version
    expect 0 'Exit codes' ./digits --help
    [ "$(wc -l <out.txt)" -le 48 ] || fail "--help is longer than a page"
    [ "$(./digits --help | awk 'length > 100' | wc -l)" = 0 ] || fail "--help has long lines"
}

# In a terminal one line that fits its width and keeps the loss and the time left; elsewhere no control characters.
test_talk() {
    local columns line LC_ALL=C.UTF-8
    command -v script >/dev/null || { echo '  no script here: left out'; return; }
    for columns in 120 80 50; do
        rm -rf talk
        TERM=xterm script -qec "stty cols $columns; ./digits --run talk --epochs 200 --set evaluate='100 epochs'" /dev/null >talk.txt || fail "$columns columns"
        tr '\r' '\n' <talk.txt | sed 's/\x1b\[K//g' | grep '  all ' >lines.txt
        [ -s lines.txt ] || fail "$columns columns: no line"
        while read -r line; do
            [[ ${#line} -lt $columns && $line == *loss* ]] || fail "$columns columns: $line"
        done <lines.txt
    done
    rm -rf talk
    ./digits --run talk --epochs 3 >out.txt 2>talk.txt
    grep -q '^epoch 3  step 69  train loss' talk.txt || fail "no line at an evaluation"
    LC_ALL=C grep -q '[[:cntrl:]]' talk.txt out.txt && fail "control characters without a terminal"
}

# A limit on the size of files stands for a full disk: the error is said, the old checkpoint is whole.
test_full_disk() {
    expect 0 '' ./digits --run full --epochs 2 --quiet
    cp full/weights/last.safetensors before.st
    expect 1 'error:' bash -c 'ulimit -f 8; exec ./digits --resume full --epochs 4 --quiet'
    same full/weights/last.safetensors before.st
    expect 0 '' ./digits --resume full --epochs 4 --quiet
    expect 1 'error:' bash -c 'ulimit -f 4; exec ./digits --init-only c.st'
    head -n 50 digits.csv >rows.csv
    expect 1 'standard output' bash -c './digits --predict rows.csv --weights full/weights/last.safetensors >/dev/full'
}

# every_allocation SETUP COMMAND…: the 1st, 2nd, … allocation fails, alone and with all that follow, until there are no more:
# an error that is said or success, never a crash. SETUP prepares what the command changes.
every_allocation() {
    local setup=$1 how n code
    shift
    for how in FAIL_AT FAIL_FROM; do
        for ((n = 1; n < 2000; n++)); do
            $setup
            env $how=$n "$@" >alloc.txt 2>&1
            code=$?
            [ $code -le 1 ] || { fail "$how=$n $*: exit code $code: $(cat alloc.txt)"; break; }
            [ $code = 0 ] || grep -q 'error:' alloc.txt || fail "$how=$n $*: no message"
            grep -qx fault alloc.txt || break
        done
        [ $code = 0 ] || fail "$how $*: ended with $code without a fault"
        echo "  $((n - 1)) allocations: $how $*"
    done
}

test_allocations() {
    head -n 100 digits.csv >few.csv
    head -n 300 digits.csv >some.csv
    ./counting --run count --epochs 4 --set evaluate='1000 epochs' --quiet --log count.jsonl >/dev/null 2>count.txt
    grep -qx 'allocations in steps: 0' count.txt || fail "$(cat count.txt)"
    ./digits --run before --batch 16 --steps 3 --quiet --set data.path=few.csv >/dev/null 2>&1 || fail "before"
    ./words --run spelt --batch 16 --steps 3 --quiet --set data.path=some.csv >/dev/null 2>&1 || fail "spelt"
    fresh() { rm -rf alloc; }
    again() { rm -rf alloc; cp -r before alloc; }
    every_allocation fresh ./counting --run alloc --batch 16 --steps 3 --threads 2 --quiet --set data.path=few.csv --log alloc.jsonl
    every_allocation fresh ./counting-words --run alloc --batch 16 --steps 3 --quiet --set data.path=some.csv
    every_allocation again ./counting --resume alloc --steps 6 --quiet
    every_allocation : ./counting --eval --weights before/weights/best.safetensors --set data.path=few.csv
    every_allocation : ./counting-words --predict few.csv --weights spelt/weights/best.safetensors --out answers.csv
    every_allocation : ./counting --init-only alloc.st
    every_allocation : ./counting --help
}

# A file system of a few pages, where mounting one is allowed: wherever it fills up, the error is said, what was saved loads,
# and with more room the run goes on to the same weights.
test_small_disk() {
    local size code full=0
    unshare -rm mount -t tmpfs none /mnt 2>/dev/null || { echo '  no mounting here: left out'; return; }
    ./digits --run roomy --epochs 6 --quiet --set evaluate='1 epoch' >roomy.txt 2>&1 || fail "with room"
    mkdir -p disk
    for size in 8 16 24 32 40 48 56 64 72 80 96 128; do
        cat >small.sh <<END
mount -t tmpfs -o size=${size}k none disk || exit 99
./digits --run disk/run --epochs 6 --quiet >small.txt 2>&1
echo \$? >small.code
mount -o remount,size=10m disk || exit 99
if [ -e disk/run/weights/last.safetensors ]; then
    ./digits --eval --weights disk/run/weights/last.safetensors >eval.txt 2>&1 || exit 98
    ./digits --resume disk/run --epochs 6 --quiet >more.txt 2>&1 || grep -q 'has done all its' more.txt || exit 97
fi
END
        rm -f more.txt
        unshare -rm bash small.sh || fail "$size KiB: $? $(cat small.txt eval.txt more.txt)"
        code=$(cat small.code)
        [ $code -le 1 ] || fail "$size KiB: exit code $code: $(cat small.txt)"
        [ $code = 0 ] || grep -q 'No space left' small.txt || fail "$size KiB: $(cat small.txt)"
        full=$((full + code))
        [ ! -e more.txt ] || grep -q 'has done all its' more.txt || [ "$(last_digest more.txt)" = "$(last_digest roomy.txt)" ] ||
            fail "$size KiB: other weights"
    done
    [ $full -ge 5 ] && [ $code = 0 ] || fail "$full of 12 sizes were too small, the last ended with $code"
    echo "  $full sizes were too small"
}

test_start_up() {
    local best=1000000 begun ended i
    for i in 1 2 3 4 5; do
        rm -rf quick
        begun=$(date +%s%N)
        ./digits --run quick --steps 1 --quiet >/dev/null 2>&1
        ended=$(date +%s%N)
        [ $(((ended - begun) / 1000)) -lt $best ] && best=$(((ended - begun) / 1000))
    done
    echo "  start, one step, end: $best us"
    [ $best -lt 50000 ] || fail "start-up takes $best us"
}

build
for test_name in ${*:-learns threads stop_and_resume kill kill_points failed_calls rules nan checkpoints init_only split predict data usage benchmark full_disk allocations start_up}; do
    before=$failures
    "test_$test_name"
    [ $before = $failures ] && echo "ok   $test_name"
done
exit $((failures > 0))
