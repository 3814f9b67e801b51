#!/usr/bin/env bash
# The whole way once: installs what is missing, builds mlc, compiles the digits net into a training program, trains it on
# the real digits, and makes an inference object of the best weights, which a C program runs on the rows that were held out.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
bash packages.sh gcc cmake make flex bison zlib1g-dev protobuf-c-compiler libprotobuf-c-dev libxxhash-dev || exit 1
echo "building mlc"
{ cmake -S . -B build && cmake --build build -j2 --target mlc --target mlrt; } >build-log.txt 2>&1 || { tail -n 30 build-log.txt; exit 1; }
cd samples/digits
echo "mlc compile digits.net"
"$root/build/mlc" compile digits.net
echo "./digits-train"
./digits-train
echo "mlc compile digits.net --emit obj, with the best weights; a C program that links it"
"$root/build/mlc" compile digits.net --emit obj --batch 64 --weights runs/latest/weights/best.safetensors
cc -std=c11 -O2 use.c digits.o -lm -o use
./use optdigits.csv runs/latest/split.csv
