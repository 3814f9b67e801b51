#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests. The last line counts them.
set -u
cd "$(dirname "$0")/.." || exit 3
bash packages.sh gcc g++ cmake make flex bison pkgconf zlib1g-dev protobuf-c-compiler libprotobuf-c-dev libxxhash-dev libmpfr-dev strace mandoc || exit 1
cmake -S . -B build >build-log.txt 2>&1 && cmake --build build -j2 >>build-log.txt 2>&1 || { tail -n 40 build-log.txt; exit 1; }
ctest --test-dir build -j2 --output-on-failure | tee build/ctest.txt
total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' build/ctest.txt | tail -n 1)
failed=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed.*/\1/p' build/ctest.txt | tail -n 1)
[ -n "$total" ] && [ -n "$failed" ] || { echo "0 passed, 1 failed"; exit 1; }
echo "$((total - failed)) passed, $failed failed"
[ "$failed" = 0 ]
