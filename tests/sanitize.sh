#!/bin/sh
# Builds the compiler and the runtime with AddressSanitizer and UndefinedBehaviorSanitizer, and runs the tests of the core, of
# the readers (corpora included), of the kernels and of the language in that build.
#   tests/sanitize.sh DIR      DIR: where to build
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:?usage: sanitize.sh DIR}
tests='core|size|interpreter|graph_text|passes|passes_memory|net|kernels_.*_plain|kernels_table|trainer_parts|trainer_dataset|runtime_files|fuzz.*'
mkdir -p "$dir" || exit 2
if ! cmake -S "$root" -B "$dir" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" >"$dir/log" 2>&1 ||
    ! cmake --build "$dir" -j2 >"$dir/log" 2>&1; then
    tail -20 "$dir/log"
    exit 1
fi
ulimit -s 65536                                         # frames are several times larger than in a plain build
cd "$dir" || exit 2
export ASAN_OPTIONS=detect_leaks=0                      # the compiler frees at its end, as a whole
ctest -R "^($tests)\$" -j2 --output-on-failure
