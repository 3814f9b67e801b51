#!/usr/bin/env bash
# Installs into a temporary prefix, moves it, and uses it as people do: CMake's find_package and mlc_add_model, pkg-config, a
# training program. Nothing of the source or build tree may be opened. Usage: install.sh BUILD SOURCE
set -euo pipefail
build=$(cd "$1" && pwd -P) source=$(cd "$2" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL install: $*" >&2; exit 1; }
unset MLC_HOME CC
export LC_ALL=C

cmake --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; fail "cmake --install"; }
mv "$work/first" "$work/prefix"                         # nothing in it knows where it was put
p=$work/prefix
for file in bin/mlc lib/mlc/libmlrt.a include/mlc/mlrt.h share/man/man1/mlc.1 share/bash-completion/completions/mlc \
    share/zsh/site-functions/_mlc share/fish/vendor_completions.d/mlc.fish lib/pkgconfig/mlc.pc lib/cmake/mlc/mlcConfig.cmake; do
    [ -s "$p/$file" ] || fail "$file is not installed"
done
grep -rlF -e "$build" -e "$source" "$p/lib/cmake" "$p/lib/pkgconfig" "$p/share" && fail "paths of the build are installed"

# --- CMake -------------------------------------------------------------------------------------------------------------
mkdir "$work/app"
cd "$work/app"
cat >part.net <<'EOF'
block scaled(x, factor) {
    x * factor
}
EOF
cat >twice.net <<'EOF'
import "part.net"

net twice

input x: f32[N, 3]
output y = scaled(x, 2.0) + 1
EOF
cat >main.c <<'EOF'
#include "twice.h"
#include <stdio.h>

int main(void)
{
    static _Alignas(64) char arena[1 << 16];
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    twice_status status = twice_run(&(twice_io){.x = x, .y = y}, 2, arena, sizeof arena);
    printf("%s %g %g %g\n", twice_status_text(status), y[0], y[3], y[5]);
    return status != twice_OK;
}
EOF
cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
find_package(mlc REQUIRED)
mlc_add_model(twice twice.net BATCH 4 TARGET x86-64)
add_executable(app main.c)
target_link_libraries(app PRIVATE twice)
mlc_add_model(twice_shared twice.net BATCH 4 TYPE SHARED)
add_executable(app_shared main.c)
target_link_libraries(app_shared PRIVATE twice_shared)
EOF
[ "$(uname -m)" = x86_64 ] || sed -i 's/ TARGET x86-64//' CMakeLists.txt
use_cmake() { # generator, folder
    cmake -S . -B "$2" -G "$1" -DCMAKE_PREFIX_PATH="$p" >"$work/log" 2>&1 || { cat "$work/log"; fail "find_package ($1)"; }
    cmake --build "$2" >"$work/log" 2>&1 || { cat "$work/log"; fail "mlc_add_model ($1)"; }
    [ "$("$2/app")" = "done 3 9 13" ] || fail "$1: the program says $("$2/app")"
    [ "$("$2/app_shared")" = "done 3 9 13" ] || fail "$1: the shared program says $("$2/app_shared")"
    sed -i 's/x \* factor/x * factor + 1/' part.net             # a file that the model imports: the depfile knows it
    cmake --build "$2" >"$work/log" 2>&1 || { cat "$work/log"; fail "building again ($1)"; }
    [ "$("$2/app")" = "done 4 10 14" ] || fail "$1: a change of an imported file is not seen"
    sed -i 's/x \* factor + 1/x * factor/' part.net
    cmake --build "$2" >"$work/log" 2>&1
    cmake --build "$2" 2>&1 | grep -q "Compiling the model" && fail "$1: it is built again though nothing changed"
    return 0
}
use_cmake "Unix Makefiles" make
if command -v ninja >/dev/null; then use_cmake Ninja ninja; fi
sed -i 's/BATCH 4 TARGET/BACH 4 TARGET/; s/twice.net BATCH 4 TYPE/twice.net BACH 4 TYPE/' CMakeLists.txt
cmake -S . -B wrong -DCMAKE_PREFIX_PATH="$p" >"$work/log" 2>&1 && fail "mlc_add_model takes BACH"
grep -q "not understood: BACH" "$work/log" || fail "mlc_add_model does not say what it does not understand"

# --- pkg-config --------------------------------------------------------------------------------------------------------
export PKG_CONFIG_PATH=$p/lib/pkgconfig
mlc=$(pkg-config --variable=mlc mlc)
"$mlc" compile twice.net --emit obj --batch 4 -o twice.o
cc main.c twice.o -lm -o by_hand
[ "$(./by_hand)" = "done 3 9 13" ] || fail "pkg-config: the program says $(./by_hand)"
cat >train.net <<'EOF'
net train

input x: f32[N, 3]
output y = dense(x, 1)

train {
    target t: f32[N, 1]
    loss = mse(y, t)
    data csv("t.csv") {
        x = columns(0..2)
        t = reshape(column(3), [1])
        split train = 100%
    }
    batch     = 2
    steps     = 3
    optimizer = sgd(lr = 0.01)
}
EOF
printf '1,2,3,4\n2,3,4,5\n3,4,5,6\n4,5,6,7\n' >t.csv
if "$mlc" check train.net; then
    "$mlc" compile train.net --emit train_c
    read -ra flags <<<"$(pkg-config --cflags --libs mlc)"
    cc train-train.c "${flags[@]}" -o by_pkg_config
    strace -f -o "$work/calls" -e trace=open,openat,execve "$mlc" compile train.net
    grep -F -e "\"$source/" -e "\"$build/" "$work/calls" && fail "an installed mlc looks into the source tree"
    ./train-train --init-only one.safetensors >/dev/null
    ./by_pkg_config --init-only two.safetensors >/dev/null
    cmp one.safetensors two.safetensors || fail "the program from its C text is another"
else
    fail "train.net"
fi
cp -r "$p/bin" "$work/alone"
"$work/alone/mlc" compile train.net -o lost 2>"$work/log" && fail "mlc without its runtime makes a training program"
grep -q "MLC_HOME names the folder" "$work/log" || fail "mlc without its runtime does not say what to do"
MLC_HOME=$p "$work/alone/mlc" compile train.net -o found || fail "MLC_HOME"
echo "install: 1 passed, 0 failed"
