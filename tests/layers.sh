#!/bin/sh
# Who may include whom, as ARCHITECTURE.md draws it: runtime includes nobody, kernels nobody, compiler only itself; frontend,
# passes and codegen build on compiler; the driver ties all together. Each include of a quoted file is resolved and looked up.
cd "$(dirname "$0")/.." || exit 2

layer_of() { # a path from the root
    case $1 in
        compiler/driver/*) echo driver ;;
        *) echo "${1%%/*}" ;;
    esac
}

allowed() { # from, to
    case "$1 $2" in
        "$1 $1") return 0 ;;
        "driver "*) return 0 ;;
        "frontend compiler" | "passes compiler" | "codegen compiler") return 0 ;;
    esac
    return 1
}

# Both must draw the same random numbers, so there is one text of it.
exception="compiler/eval_prim.c kernels/c/random.h"

files=$(find runtime kernels compiler frontend passes codegen -name '*.c' -o -name '*.h' -o -name '*.y' -o -name '*.l' -o -name '*.def')
found=0 wrong=0
for file in $files; do
    for name in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
        to=
        for dir in "$(dirname "$file")" compiler frontend/net codegen runtime; do
            [ -f "$dir/$name" ] && to=$(realpath --relative-to=. "$dir/$name") && break
        done
        case $name in net.tab.h | net.lex.h | onnx.pb-c.h) continue ;; esac
        case $file in codegen/skeleton/*) continue ;; esac      # texts of generated programs
        found=$((found + 1))
        if [ -z "$to" ]; then
            echo "$file includes $name, which is nowhere"
            wrong=$((wrong + 1))
        elif ! allowed "$(layer_of "$file")" "$(layer_of "$to")" && [ "$file $to" != "$exception" ]; then
            echo "$file includes $to: $(layer_of "$file") may not build on $(layer_of "$to")"
            wrong=$((wrong + 1))
        fi
    done
done
echo "$found includes, $wrong against the layers"
[ "$found" -gt 100 ] && [ "$wrong" = 0 ]
