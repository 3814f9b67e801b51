#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests. The last line counts them.
set -u
cd "$(dirname "$0")/.." || exit 3
packages="gcc cmake make flex bison pkgconf zlib1g-dev libxxhash-dev libmpfr-dev strace"
missing=""
for p in $packages; do dpkg -s "$p" >/dev/null 2>&1 || missing="$missing $p"; done
if [ -n "$missing" ]; then
    echo "installing:$missing"
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null; }; then
        echo "please install: apt-get install$missing" >&2
        exit 1
    fi
fi
cmake -S . -B build >build-log.txt 2>&1 && cmake --build build -j2 >>build-log.txt 2>&1 || { tail -n 40 build-log.txt; exit 1; }
ctest --test-dir build --output-on-failure | tee build/ctest.txt
total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' build/ctest.txt)
failed=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed.*/\1/p' build/ctest.txt)
[ -n "$total" ] && [ -n "$failed" ] || { echo "0 passed, 1 failed"; exit 1; }
echo "$((total - failed)) passed, $failed failed"
[ "$failed" = 0 ]
