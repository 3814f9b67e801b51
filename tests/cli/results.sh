#!/usr/bin/env bash
# What mlc makes: every kind of result, every target, and that the compiled object, the program and the interpreter agree on files.
# Usage: results.sh MLC NPY
. "$(dirname "$0")/common.sh"
npy=$second

cat >part.net <<'EOF'
block scaled(x, factor) {
    x * factor
}
EOF
cat >two.net <<'EOF'
import "part.net"

net two

param factor = 2

input a: f32[N, T <= 6, 3]
input b: f32[N, 3]
input k: i32[N]
output sum = scaled(a, factor) + reshape(b, [N, 1, 3])
output twice = b * 2.0
output code = k + 1
EOF
cat >conv.net <<'EOF'
net conv

input image: f32[N, 1, 8, 8]
x = maxpool(relu(batchnorm(conv(image, 4, kernel = 3, pad = same))), kernel = 2)
output logits = dense(flatten(x), 10)

train {
    target label: i32[N]
    loss = cross_entropy(logits, label)
    data csv("d.csv") {
        image = columns(0..63) / 16
        label = column(64)
        split train = 100%
    }
    batch     = 4
    steps     = 2
    optimizer = sgd(lr = 0.01)
}
EOF
"$npy" make x.npy f32 5,1,8,8 7

# --- names of results, and nothing besides ---------------------------------------------------------------------------------
made() { # what is expected, command
    local want=$1
    shift
    mkdir -p names
    ( cd names && rm -f -- * && "$mlc" "$@" ) >out.txt 2>err.txt
    # shellcheck disable=SC2012
    got=$(ls names | tr '\n' ' ')
    [ "${got% }" = "$want" ] && clean && pass || fail "mlc $*: makes $got, not $want"
}
made "two.h two.o" compile ../two.net
made "conv-train" compile ../conv.net
made "conv-train.c" compile ../conv.net --emit train_c
made "conv.h conv.o" compile ../conv.net --emit obj
made "conv.c conv.h" compile ../conv.net --emit c
made "libtwo.a two.h" compile ../two.net --emit lib
made "libtwo.so two.h" compile ../two.net --emit so
made "two-run" compile ../two.net --emit exe
made "" compile ../conv.net --emit graph,program
made "libtwo.a libtwo.so two-run two.c two.h two.o" compile ../two.net --emit obj,lib,so,exe,c
made "two.h x.o x.o.d" compile ../two.net -o x.o -MD
made "" compile ../two.net --emit obj,lib,so,exe --dry-run
grep -q '^gcc .* -c two.c -o .*/two.o$' out.txt && grep -q -e '-shared' out.txt && pass || fail "--dry-run does not show the commands"
made "two.c two.h" compile ../two.net --emit c -D factor=3
mkdir kept
try 0 "" compile two.net --emit obj --keep kept -o kept-two.o
[ -s kept/two.c ] && [ -s kept/two.h ] && pass || fail "--keep"
try 0 " -c two.c -o " compile two.net -v -o v.o
"$mlc" compile conv.net --time -o timed 2>err.txt && grep -q "C compiler  *[0-9.]* ms" err.txt && grep -q "^fuse " err.txt && pass || fail "--time"
"$mlc" compile conv.net --emit train_c --show fuse -o shown.c 2>err.txt && grep -q "^# after fuse" err.txt && pass || fail "--show fuse"
"$mlc" compile two.net --emit graph -o two.graph && grep -q "^graph" two.graph && pass || fail "--emit graph -o"
for part in infer train eval data; do
    "$mlc" compile conv.net --emit graph --part $part >out.txt && [ -s out.txt ] && pass || fail "--part $part of the graph"
    "$mlc" compile conv.net --emit program --part $part >out.txt && grep -q "^step 0 " out.txt && pass || fail "--part $part of the program"
    "$mlc" plan conv.net --part $part >out.txt && grep -q "lower bound" out.txt && pass || fail "plan --part $part"
done
try 2 "it is of inference" plan conv.net --batch 3
try 0 "" plan conv.net --part infer --batch 3

# Same bytes each time, from another folder, with other temporary folders.
mkdir -p other/tmp
cp two.net part.net other
"$mlc" compile two.net --target x86-64 -o one.o 2>err.txt
( cd other && TMPDIR=$work/other/tmp "$mlc" compile two.net --target x86-64 -o two.o )
if [ "$(uname -m)" = x86_64 ]; then cmp -s one.o other/two.o && pass || fail "the object depends on the place it is made in"; fi
rm -rf other

# --- dependencies ----------------------------------------------------------------------------------------------------------
try 0 "" compile two.net -o x.o -MD -MF x.dep -MT 'a target' -MP
cat >want.dep <<EOF
a\\ target: \\
  $work/two.net \\
  $work/part.net
$work/two.net:
$work/part.net:
EOF
diff want.dep x.dep >err.txt && pass || fail "-MD -MF -MT -MP"

# --- run: interpreter, object and program agree ------------------------------------------------------------------------------
"$mlc" compile conv.net -o conv-train && printf '%s\n' "$(seq -s, 1 64),3" "$(seq -s, 2 65),4" "$(seq -s, 3 66),5" "$(seq -s, 4 67),6" >d.csv &&
    ./conv-train --init-only conv.safetensors >out.txt 2>err.txt || fail "weights for the tests"
"$npy" csv x.csv x.npy
try 0 "" run conv.net x.npy --weights conv.safetensors --out compiled
try 0 "" run conv.net x.npy --weights conv.safetensors --out interpreted --interpret
try 0 "" run conv.net image=x.csv --weights conv.safetensors --out from_csv
expect "object and interpreter agree" "$npy" same compiled/output_0.npy interpreted/output_0.npy 1e-6
expect "CSV and npy agree" "$npy" same compiled/output_0.npy from_csv/output_0.npy 1e-6
try 0 "" compile conv.net --emit exe,obj,train --cc "gcc -Wall -Wextra -Werror" --weights conv.safetensors
try 0 "" run conv.net x.npy --weights conv.safetensors --out warned --cc "gcc -Wall -Wextra -Werror"
try 0 "" compile conv.net --emit exe --batch 5 --weights conv.safetensors
expect "the program" ./conv-run x.npy --out program
expect "program and object have the same bits" cmp program/output_0.npy compiled/output_0.npy
"$npy" make x6.npy f32 6,1,8,8 7
./conv-run x6.npy --out p6 2>err.txt
[ $? = 1 ] && grep -q "N is 6 on axis 0, and at most 5 fit (--batch, when compiling)" err.txt && pass || fail "a batch above the program's"
./conv-run x.npy 2>err.txt
[ $? = 2 ] && grep -q -e "--out DIR" err.txt && pass || fail "a program without --out"
./conv-run --help >out.txt && grep -q "image f32 (N, 1, 8, 8)" out.txt && pass || fail "the program's --help"

"$npy" make a.npy f32 2,4,3 1
"$npy" make b.npy f32 2,3 2
"$npy" make k.npy i32 2 3
for how in "" --interpret; do
    rm -rf p q
    # shellcheck disable=SC2086
    try 0 "" run two.net a.npy b.npy k.npy --out o $how
    # shellcheck disable=SC2086
    try 0 "" run two.net k=k.npy a=a.npy b.npy --out p $how
    for i in 0 1 2; do expect "order and names agree" cmp o/output_$i.npy p/output_$i.npy; done
    # shellcheck disable=SC2086
    try 0 "" run two.net a.npy b.npy k.npy --out q -D factor=3 $how
    cmp -s o/output_0.npy q/output_0.npy && fail "-D does nothing" || pass
    mv o "agree$how"
done
for i in 0 1 2; do expect "outputs $i agree" "$npy" same agree/output_$i.npy agree--interpret/output_$i.npy 1e-6; done
"$npy" make a3.npy f32 3,4,3 1
"$npy" make a7.npy f32 2,7,3 1
"$npy" make a2d.npy f32 2,3 1
"$npy" make a5.npy f32 2,4,5 1
"$npy" make a0.npy f32 2,0,3 1
"$npy" make ad.npy f64 2,4,3 1
"$npy" make kl.npy i64 2 3
printf '1,2,3,4\n5,6,7,8\n' >four.csv
printf '1,2,3\n4,x,6\n' >bad.csv
head -c 100 a.npy >cut.npy
try 1 "N is 3 in a3.npy (axis 0), but 2 in b.npy (axis 0)" run two.net a3.npy b.npy k.npy --out e
try 1 "a7.npy: T is 7 on axis 1, and at most 6 fit" run two.net a7.npy b.npy k.npy --out e
try 1 "a2d.npy has the shape (2, 3), and a takes (N, T, 3)" run two.net a2d.npy b.npy k.npy --out e
try 1 "a5.npy has the shape (2, 4, 5), and a takes (N, T, 3), here (2, 4, 3)" run two.net a5.npy b.npy k.npy --out e
try 1 "a0.npy: T is 0 on axis 1, and must be at least 1" run two.net a0.npy b.npy k.npy --out e
try 1 "ad.npy holds f64, and a takes f32" run two.net ad.npy b.npy k.npy --out e
try 1 "kl.npy holds i64, and k takes i32" run two.net a.npy b.npy kl.npy --out e
try 1 "four.csv has 2 rows of 4 columns, and b takes (N, 3): 3 columns" run two.net a.npy four.csv k.npy --out e
try 1 "bad.csv" run two.net a.npy bad.csv k.npy --out e
try 1 "cut.npy" run two.net cut.npy b.npy k.npy --out e
try 1 "not .npz: unpack it" run two.net x.npz b.npy k.npy --out e
try 1 "missing.npy" run two.net missing.npy b.npy k.npy --out e
try 1 "this is a folder" run two.net tmp b.npy k.npy --out e
try 2 "input k (N,) has no file; give FILE or k=FILE" run two.net a.npy b.npy --out e
try 2 "two takes 3 inputs; x.npy is one too many" run two.net a.npy b.npy k.npy x.npy --out e
try 2 "two has no input 'q'" run two.net a.npy b.npy q=k.npy --out e
try 2 "input a is given twice" run two.net a=a.npy a=b.npy b.npy --out e
try 1 "conv has parameters, so this needs --weights FILE" run conv.net x.npy --out e
try 1 "is not a folder" run two.net a.npy b.npy k.npy --out x.npy
try 1 "the folder cannot be made" run two.net a.npy b.npy k.npy --out nowhere/e
[ -e e ] && fail "a run that failed left a folder" || pass
printf '1,2,3,1,2,3\n4,5,6,4,5,6\n' >t.csv                # T follows from the columns
try 0 "" run two.net t.csv b.npy k.npy --out from_columns
expect "T from columns" test -s from_columns/output_0.npy

# Samples, as the data section reads them: the very numbers that the training program predicts.
./conv-train --predict d.csv --weights conv.safetensors --out predicted.csv >out.txt 2>err.txt || fail "--predict"
for how in "" --interpret; do
    rm -rf samples
    # shellcheck disable=SC2086
    try 0 "" run conv.net --samples d.csv --weights conv.safetensors --out samples $how
    "$npy" csv samples.csv samples/output_0.npy
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) keep[i] = $i ~ /^logits/; next }
             { line = ""; for (i = 1; i <= NF; i++) if (keep[i]) line = line (line == "" ? "" : ",") $i; print line }' predicted.csv >predicted
    [ -n "$how" ] || { cmp samples.csv predicted >err.txt && pass || fail "--samples and --predict differ"; }
    mv samples "samples$how.kept"
done
expect "--samples: object and interpreter" "$npy" same samples.kept/output_0.npy samples--interpret.kept/output_0.npy 1e-5
cut -d, -f1-64 d.csv >unlabelled.csv
try 0 "" run conv.net --samples unlabelled.csv --weights conv.safetensors --out samples
expect "without labels" cmp samples/output_0.npy samples.kept/output_0.npy
cut -d, -f1-60 d.csv >few.csv
try 1 "few.csv has 60 columns, and the net reads column 63" run conv.net --samples few.csv --weights conv.safetensors --out e
try 1 "two has no data section" run two.net --samples d.csv --out e
try 2 "--samples gives all inputs" run conv.net x.npy --samples d.csv --weights conv.safetensors --out e

# --- weights ---------------------------------------------------------------------------------------------------------------
sed 's/conv(image, 4/conv(image, 5/' conv.net >wider.net
try 1 "conv1.weight: f32(4, 1, 3, 3) in the file, f32[5, 1, 3, 3] in the net" compile wider.net --emit obj --weights conv.safetensors
sed 's/dense(flatten(x), 10)/dense(flatten(x), 10) @head/' conv.net >renamed.net
try 1 "head.weight is missing" compile renamed.net --emit obj --weights conv.safetensors
grep -q "dense1.bias is not in the net" err.txt && pass || fail "names that are not in the net are not listed"
try 0 "" compile conv.net --emit weights --weights conv.safetensors
cat >give.c <<'EOF'
#include "conv.h"
#include <stdio.h>
int main(void)
{
    static _Alignas(64) char arena[1 << 20], weights[1 << 20];
    static float image[64], logits[10];
    FILE *file = fopen("conv.weights", "rb");
    size_t got = file ? fread(weights, 1, sizeof weights, file) : 0;
    conv_status status = conv_run(&(conv_io){.weights = weights, .image = image, .logits = logits}, 1, arena, sizeof arena);
    printf("%d %d %.9g\n", got == (size_t)conv_info.weight_bytes, (int)status, logits[3]);
    return 0;
}
EOF
sed 's/\.weights = weights, //' give.c >have.c
"$mlc" compile conv.net --emit obj -o without.o && cc give.c without.o -lm -o give && ./give >given.txt &&
    "$mlc" compile conv.net --emit obj -o with.o --weights conv.safetensors && cc have.c with.o -lm -o have && ./have >had.txt
grep -q "^1 0 " given.txt 2>/dev/null && cmp -s given.txt had.txt && pass || fail "weights given and weights carried"
( mkdir -p text && cd text && "$mlc" compile ../conv.net --emit c --weights ../conv.safetensors && cc -std=gnu11 -O1 -c conv.c &&
    cc -I. ../have.c conv.o -lm -o have && cp ../conv.weights . && ./have >../text.txt ) >out.txt 2>err.txt
cut -d' ' -f1,2 text.txt | grep -qx "1 0" && pass || fail "the C text with its weights"

# Names as other tools write them, and a checkpoint with the state of the optimiser.
"$npy" prefix module.safetensors conv.safetensors module. || fail "npy prefix"
try 0 "begins with module., which the net does not have" compile conv.net --emit weights --weights module.safetensors -o module.weights
cmp -s module.weights conv.weights && pass || fail "a prefix of names changes the weights"
try 1 "[E0709]" compile wider.net --emit weights --weights module.safetensors
./conv-train --run trained --quiet >out.txt 2>err.txt && pass || fail "two steps of training"
try 0 "" compile conv.net --emit weights --weights trained/weights/last.safetensors -o last.weights
try 0 "" compile conv.net --emit weights --weights trained/weights/best.safetensors -o best.weights
cmp -s last.weights best.weights && pass || fail "last and best differ after two steps"
cmp -s last.weights conv.weights && fail "two steps change nothing" || pass

# The mapping of a sample, as the net's `data` says.
cat >prepare.c <<'EOF'
#include "conv.h"
#include <stdio.h>
int main(void)
{
    float columns[64], image[64];
    for (int i = 0; i < 64; i++)
        columns[i] = (float)(3 * i);
    conv_status status = conv_prepare(&(conv_fields){.columns_0_to_63 = columns}, &(conv_sample){.image = image});
    int wrong = 0;
    for (int i = 0; i < 64; i++)
        wrong += image[i] != (float)(3 * i) / 16;
    printf("%d %d\n", (int)status, wrong);
    return 0;
}
EOF
cc prepare.c with.o -lm -o prepare 2>err.txt && [ "$(./prepare)" = "0 0" ] && pass || fail "conv_prepare"

# --- targets ---------------------------------------------------------------------------------------------------------------
cat >use.c <<'EOF'
#include "conv.h"
#include <stdio.h>
int main(void)
{
    static _Alignas(64) char arena[1 << 20];
    float image[64], logits[10];
    for (int i = 0; i < 64; i++)
        image[i] = (float)((i * 7) % 16) / 16;
    conv_status status = conv_run(&(conv_io){.image = image, .logits = logits}, 1, arena, sizeof arena);
    printf("%s", conv_status_text(status));
    for (int i = 0; i < 10; i++)
        printf(" %.4f", logits[i]);
    puts("");
    return status != conv_OK;
}
EOF
if [ "$(uname -m)" = x86_64 ]; then
    for target in native x86-64 x86-64-v2 x86-64-v3 x86-64-v4; do
        try 0 "" compile conv.net --emit obj --target $target --weights conv.safetensors -o $target.o
    done
    cc use.c x86-64.o -lm -o use && ./use >plain.txt && grep -q "^done" plain.txt && pass || fail "the object for x86-64"
    objdump -d x86-64.o | grep -q '%[yz]mm' && fail "the object for x86-64 has AVX" || pass
    cc use.c native.o -lm -o use && ./use >native.txt && cmp -s plain.txt native.txt && pass || fail "native and x86-64 differ"
    if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null; then
        for kind in obj lib so; do try 0 "" compile conv.net --emit $kind --target aarch64 --weights conv.safetensors -o arm.$kind; done
        aarch64-linux-gnu-gcc -static use.c arm.obj -lm -o use-arm 2>err.txt && qemu-aarch64-static ./use-arm >arm.txt
        cmp -s plain.txt arm.txt && pass || fail "aarch64: $(cat arm.txt)"
        CC=gcc try 0 "" compile conv.net --emit obj --target aarch64 -o arm2.o
        [ "$(od -An -tx1 -j18 -N1 arm2.o)" = " b7" ] && pass || fail "CC of this machine makes an object for another"
    else
        echo "results: no aarch64 compiler or qemu-user here: that target is not run" >&2
    fi
    try 1 "a training program for aarch64 is not available in this version" compile conv.net --target aarch64
    try 1 "a program for aarch64 is not available in this version" compile two.net --emit exe --target aarch64
fi
# The library and the shared library link, from C and from C++.
try 0 "" compile conv.net --emit lib,so --weights conv.safetensors
cc use.c -L. -l:libconv.a -lm -o use_lib && ./use_lib >lib.txt && cmp -s native.txt lib.txt && pass || fail "libconv.a"
cc use.c -L. -lconv -Wl,-rpath,"$work" -o use_so && ./use_so >so.txt && cmp -s native.txt so.txt && pass || fail "libconv.so"
nm -D --defined-only libconv.so | grep -v ' conv_' | grep -q . && fail "libconv.so shows names that are not its own" || pass
if command -v g++ >/dev/null; then
    printf '#include "conv.h"\nint main() { conv_io io = {}; return conv_run(&io, 1, nullptr, 0) == conv_OK; }\n' >use.cc
    g++ -Wall -Wextra -pedantic -Werror use.cc -L. -l:libconv.a -o use_cc 2>err.txt && ./use_cc && pass || fail "from C++"
fi

# --- inspect ---------------------------------------------------------------------------------------------------------------
"$mlc" inspect conv.net --batch 5 >out.txt
grep -q "^conv1  *conv  *f32\[N, 4, 8, 8\]  *40 " out.txt && pass || fail "inspect: the row of a convolution"
grep -q "^parameters   698 " out.txt && grep -q "^buffers      8$" out.txt && pass || fail "inspect: totals"      # 36+4 + 4+4 + 640+10
"$mlc" inspect conv.net --json >out.txt && grep -q '"parameters": 698,$' out.txt && pass || fail "inspect --json"
"$mlc" inspect conv.net --dot >out.txt && grep -q '^digraph' out.txt && [ "$(tail -1 out.txt)" = "}" ] && pass || fail "inspect --dot"
"$mlc" inspect conv.net --parameters >out.txt && [ "$(wc -l <out.txt)" = 8 ] && pass || fail "inspect --parameters"
finish
