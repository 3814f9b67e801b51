#!/usr/bin/env bash
# What goes wrong around mlc: a C compiler that fails or is missing, signals at any moment, full disks, no memory, two at once.
# Always: a message and the right exit code, the old result as it was, and nothing left behind. Usage: faults.sh MLC MLC_FAULTY
. "$(dirname "$0")/common.sh"
faulty=$second
cat >two.net <<'EOF'
net two

param factor = 2.0

input x: f32[N, 4]
output y = relu(x) * factor
EOF
mkdir out
"$mlc" compile two.net -o out/two.o && cp out/two.o old.o || fail "the object"
as_before() { cmp -s out/two.o old.o; }

# --- the C compiler ------------------------------------------------------------------------------------------------------
compiler() { # text of a script that stands for the C compiler; the last argument is the file to make
    # shellcheck disable=SC2016
    printf '#!/bin/bash\nresult=${@: -1}\n%s\n' "$1" >cc.sh
    chmod +x cc.sh
}
try 1 "cannot be run: No such file or directory" compile two.net -o out/two.o --cc no-such-compiler
CC=no-such-compiler try 1 "no-such-compiler cannot be run" compile two.net -o out/two.o
try 1 "'' cannot be run: it has no name" compile two.net -o out/two.o --cc " "
compiler 'echo half >"$result"; echo "two.c:1: error: nonsense" >&2; exit 1'
try 3 "note: two.c:1: error: nonsense" compile two.net -o out/two.o --cc ./../../cc.sh
try 3 "the C compiler failed" compile two.net -o out/two.o --cc "$work/cc.sh"
compiler 'echo half >"$result"; echo "as: /x.o: No space left on device" >&2; exit 1'
try 1 "No space left on device" compile two.net -o out/two.o --cc "$work/cc.sh"
# shellcheck disable=SC2016
compiler 'echo half >"$result"; kill -9 $$'
try 1 "perhaps because memory ran out" compile two.net -o out/two.o --cc "$work/cc.sh"
# shellcheck disable=SC2016
compiler 'kill -SEGV $$'
try 3 "signal 11" compile two.net -o out/two.o --cc "$work/cc.sh"
compiler 'for i in $(seq 1000); do echo "line $i of what it says"; done; exit 1'
try 3 "note: line 1 of" compile two.net -o out/two.o --cc "$work/cc.sh"
[ "$(wc -l <err.txt)" -lt 40 ] && pass || fail "a thousand lines of the C compiler"
try 0 "" compile two.net -o out/two.o --cc "gcc -Wall -Wextra -Werror"
cmp -s out/two.o old.o && pass || fail "arguments of --cc"

# --- signals -------------------------------------------------------------------------------------------------------------
wait_until() { # a condition, at most 5 seconds
    for _ in $(seq 100); do
        if eval "$1"; then return 0; fi
        sleep 0.05
    done
    return 1
}
# shellcheck disable=SC2016
compiler 'echo half >"$result"; echo more >left-over.s; mkdir deep; echo x >deep/x; sleep 97 & echo $! >'"$work"'/pid; touch '"$work"'/started; wait'
for signal in KILL TERM INT HUP QUIT; do
    rm -f started
    env --default-signal=INT,QUIT "$mlc" compile two.net -o out/two.o --cc "$work/cc.sh" >out.txt 2>err.txt &
    child=$!
    wait_until '[ -e started ]' || fail "the C compiler is not called"
    kill -$signal $child
    wait $child 2>/dev/null
    wait_until '[ -z "$(ls -A tmp)" ] && ! ls -A out | grep -q tmp-' && pass || fail "SIG$signal leaves $(ls -A tmp out | tr '\n' ' ')"
    wait_until '! kill -0 "$(cat pid)" 2>/dev/null' && pass || fail "SIG$signal leaves the C compiler running"
    as_before && pass || fail "SIG$signal harms the old result"
done
ulimit -c 0
"$mlc" compile two.net -o new.o -D factor=3.0
RANDOM=1
for _ in $(seq 25); do                                  # at random moments of a real compilation
    cp old.o out/two.o
    "$mlc" compile two.net -o out/two.o -D factor=3.0 >/dev/null 2>&1 &
    child=$!
    sleep "0.$(printf %03d $((RANDOM % 200)))"
    kill -KILL $child 2>/dev/null
    wait $child 2>/dev/null
    cmp -s out/two.o old.o || cmp -s out/two.o new.o || fail "kill -9 leaves half a result"
done
wait_until '[ -z "$(ls -A tmp)" ] && ! ls -A out | grep -q tmp-' && pass || fail "kill -9 leaves $(ls -A tmp out | tr '\n' ' ')"
cp old.o out/two.o

# --- disks -----------------------------------------------------------------------------------------------------------------
head -c 300000 /dev/zero >big
mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
    chmod 1777 small
    cp old.o small/two.o
    cat big >small/filler 2>/dev/null
    try 1 "No space left on device" compile two.net -o small/two.o
    try 1 "No space left on device" compile two.net --emit c -o small/two.c
    TMPDIR=$work/small try 1 "No space left on device" compile two.net -o out/two.o
    cmp -s small/two.o old.o && pass || fail "a full disk harms the old result"
    [ "$(ls -A small | tr '\n' ' ')" = "filler two.o " ] && pass || fail "a full disk: left $(ls -A small | tr '\n' ' ')"
    umount small
else
    echo "faults: no tmpfs can be mounted here; only file sizes are limited" >&2
fi
for blocks in 0 1 4; do                                 # of 1024 bytes
    for what in "--emit c -o out/two.c" "-o out/two.o" "--emit lib -o out/two.a"; do
        # shellcheck disable=SC2086
        ( ulimit -f $blocks; exec "$mlc" compile two.net $what ) 2>&1 | cat >err.txt
        code=${PIPESTATUS[0]}
        [ "$code" = 1 ] && [ -s err.txt ] && clean && as_before && ! ls out | grep -q tmp- && pass || fail "ulimit -f $blocks, $what: exit code $code"
    done
done
[ "$(ls out | tr "\n" " ")" = "two.h two.o " ] && pass || fail "a limit of file sizes leaves $(ls out | tr '\n' ' ')"

# --- two at once -----------------------------------------------------------------------------------------------------------
for _ in 1 2 3 4; do
    "$mlc" compile two.net -o out/two.o &
    one=$!
    "$mlc" compile two.net -o out/two.o -D factor=3.0 &
    other=$!
    wait $one && wait $other && { cmp -s out/two.o old.o || cmp -s out/two.o new.o; } && ! ls out | grep -q tmp- && pass ||
        fail "two at once into one result"
done
cp old.o out/two.o

# --- memory ------------------------------------------------------------------------------------------------------------------
for limit in 4000 6000 8000 10000 12000 16000 24000 32000 48000 64000; do       # kB of addresses
    ( ulimit -v $limit; exec "$mlc" compile two.net --emit c -o out/memory.c ) >out.txt 2>err.txt
    code=$?
    [ $code = 0 ] || [ -s err.txt ] && [ $code -le 1 ] || [ $code = 127 ] && clean && pass || fail "ulimit -v $limit: exit code $code"
done
cat >cc.sh <<'EOF'
#!/bin/sh
for last; do :; done
echo made >"$last"
EOF
printf '1,2,3,4\n5,6,7,8\n' >x.csv
every_allocation() { # words of mlc: each allocation fails once, then each and all after it
    local count n code ever
    MLC_FAIL_COUNT=$work/count "$faulty" "$@" >out.txt 2>err.txt || { fail "mlc $*"; return; }
    count=$(cat count)
    [ "$count" -gt 2 ] || fail "mlc $*: $count allocations; is the allocator wrapped?"
    for ever in "" 1; do
        for n in $(seq "$count"); do
            MLC_FAIL_AT=$n MLC_FAIL_EVER=$ever
            if [ -n "$ever" ]; then export MLC_FAIL_EVER; else unset MLC_FAIL_EVER; fi
            MLC_FAIL_AT=$n "$faulty" "$@" >out.txt 2>err.txt
            code=$?
            # Some failures cost nothing (an empty result of a buffer that was not needed): then all is as usual.
            if [ $code -gt 1 ] || { [ $code = 1 ] && ! grep -qi "memory" err.txt; }; then
                fail "mlc $*: allocation $n of $count${ever:+ and all after it} fails: exit code $code"
                return
            fi
            clean && as_before || { fail "mlc $*: allocation $n of $count fails, and something is left"; return; }
        done
    done
    unset MLC_FAIL_EVER
    pass
}
every_allocation check two.net
every_allocation compile two.net --emit c -o -
every_allocation compile two.net --emit so -o x.so --cc "$work/cc.sh"
every_allocation run two.net x.csv --out answers --interpret
every_allocation inspect two.net
every_allocation fmt --check two.net

# --- system calls that fail ------------------------------------------------------------------------------------------------
# Each call of each kind fails once, but for those of the loader and of the start.
try_calls() { # call, error
    local n code begun
    strace -o calls -e trace="$1" "$mlc" passes >out.txt 2>err.txt
    begun=$(grep -c "^$1(" calls)
    for n in $(seq $((begun + 1)) $((begun + 60))); do
        timeout 20 strace -o calls -e trace="$1" -e inject="$1:error=$2:when=$n" "$mlc" compile two.net -o out/two.o --cc "$work/cc.sh" >out.txt 2>err.txt
        code=$?
        grep -q INJECTED calls || break                 # there are fewer
        if [ $code = 0 ]; then
            [ "$(cat out/two.o)" = made ] || { fail "$1 $n fails with $2, and the result is wrong"; return; }
        elif [ $code != 1 ] || [ ! -s err.txt ]; then
            fail "$1 $n fails with $2: exit code $code"
            return
        fi
        wait_until clean && ! ls out | grep -q tmp- || { fail "$1 $n fails with $2: left $(ls -A tmp out | tr '\n' ' ')"; return; }
        [ $code = 0 ] || as_before || [ "$(cat out/two.o)" = made ] || { fail "$1 $n fails with $2, and the old result is gone"; return; }
        cp old.o out/two.o
    done
    [ "$n" -gt $((begun + 1)) ] && pass || fail "no call of $1 is made to fail"
}
if strace -o calls true 2>/dev/null; then
    for call in openat:ENOENT openat:EMFILE write:ENOSPC fsync:EIO rename:EACCES mkdir:ENOSPC pipe2:EMFILE clone:EAGAIN mmap:ENOMEM \
        readlink:ENOENT close:EIO wait4:EINTR; do
        try_calls "${call%:*}" "${call#*:}"
    done
    cp old.o out/two.o
else
    echo "faults: strace may not be used here; no system calls are made to fail" >&2
fi

finish
