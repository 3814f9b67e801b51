#!/usr/bin/env bash
# The command line: what is not understood, what cannot be read, what is printed from the tables. Usage: usage.sh MLC
. "$(dirname "$0")/common.sh"
rows=$here/../../compiler/driver/options.def
verbs=$(sed -n 's/^VERB(\([a-z]*\),.*/\1/p' "$rows")

cat >plain.net <<'EOF'
net plain

input x: f32[N, 4]
output y = relu(x)
EOF
cat >trained.net <<'EOF'
net trained

param width = 8

input x: f32[N, 4]
output y = dense(relu(dense(x, width)), 1)

train {
    target t: f32[N, 1]
    loss = mse(y, t)
    data csv("t.csv") {
        x = columns(0..3)
        t = reshape(column(4), [1])
        split train = 100%
    }
    batch     = 2
    steps     = 3
    optimizer = sgd(lr = 0.01)
}
EOF
printf 'net broken\n\ninput x: f32[N, 4]\noutput y = rellu(x)\n' >broken.net

# --- verbs and options -------------------------------------------------------------------------------------------------
try 2 "usage: mlc VERB"
try 2 "did you mean compile?" compil plain.net
try 2 "mlc compile plain.net" plain.net
try 2 "no verb is called xyzzy" xyzzy
try 2 "mlc --help lists the verbs" xyzzy
for verb in $(sed -n 's/^LATER(\([a-z]*\))/\1/p' "$rows"); do try 2 "mlc $verb is not available in this version" "$verb" plain.net; done
try 2 "did you mean --emit?" compile plain.net --emti obj
try 2 "unknown option --zzzzzzzz" compile plain.net --zzzzzzzz
try 2 "mlc compile --help lists the options" compile plain.net --zzzzzzzz
try 2 "--interpret does not go with mlc compile; it belongs to run" compile plain.net --interpret
try 2 "--emit needs an argument" compile plain.net --emit
try 2 "-D needs an argument" compile plain.net -D
try 2 "--time takes no argument" compile plain.net --time=3
try 2 "--output is given twice, as a and as b" compile plain.net -o a --output b
try 2 "--output needs an argument" compile plain.net -o ""
for n in 0 -1 x 1.5 99999999999999999999 1073741825 ""; do try 2 "--batch takes a whole number" compile plain.net --emit c --batch "$n"; done
try 2 "did you mean obj?" compile plain.net --emit ojb
try 2 "--emit does not know  " compile plain.net --emit " "
try 2 "--emit does not know ''" compile plain.net --emit c,,c
try 2 "did you mean x86-64-v3?" compile plain.net --target x86-64-w3
try 2 "--diagnostics takes text, json" check plain.net --diagnostics yaml
try 2 "-D width: NAME=VALUE" compile trained.net -D width
try 1 "did you mean width?" compile trained.net -D widht=3
try 2 "--limit net_nesting: NAME=VALUE" check plain.net --limit net_nesting
try 2 "--limit net_nestin=3" check plain.net --limit net_nestin=3
try 2 "no warning is called" check plain.net -Wnonsense
try 2 "mlc compile takes MODEL" compile
try 2 "trained.net is too many" compile plain.net trained.net
try 2 "several results" compile plain.net --emit obj,c -o x
try 2 "only text goes to standard output" compile plain.net --emit obj -o -
try 2 "it is of objects" compile trained.net --batch 4
try 2 "takes them when it runs" compile trained.net --weights w
try 2 "it is of --emit graph" compile plain.net --part infer
try 2 "it goes with -MD" compile plain.net -MF x.d
try 2 "--show does not know fuze" plan plain.net --show fuze
try 2 "did you mean fuse?" plan plain.net --show fuze
try 2 "they exclude each other" inspect plain.net --json --dot
try 2 "--out DIR" run plain.net x.npy
try 2 "no shell with a completion is called csh" completion csh
try 1 "plain has no train section" compile plain.net --emit train
try 1 "plain has no train section" compile plain.net --emit graph --part train
try 1 "trained has parameters, so this needs --weights FILE" compile trained.net --emit exe
try 1 "no op is called convv" ops convv
try 1 "no message is called E9999" explain E9999
try 0 "" check -- plain.net
try 0 "" check plain.net trained.net
try 1 "broken.net:4:12: error:" check plain.net broken.net

# --- files that cannot be read or written --------------------------------------------------------------------------------
mkdir folder
mkfifo fifo
: >empty.net
for verb in compile check fmt inspect plan; do
    try 1 "missing.net cannot be read: No such file or directory" $verb missing.net
    try 1 "folder cannot be read: this is a folder" $verb folder
    try 1 "fifo cannot be read: not a regular file" $verb fifo
done
try 1 "No such file or directory" run missing.net x.npy --out o
try 1 "error:" compile empty.net
try 1 "folder cannot be written: it is a folder" compile plain.net -o folder
try 1 "cannot be written: No such file or directory" compile plain.net -o nowhere/plain.o
try 1 "nowhere" compile plain.net --emit c -o nowhere/plain.c
try 1 "would replace plain.net" compile plain.net -o plain.net
try 1 "would replace plain.net" compile plain.net --emit c -o ./plain.net
ln plain.net other-name.net
try 1 "which it is made from" compile plain.net --emit c -o other-name.net
try 1 "missing.safetensors" compile trained.net --emit obj --weights missing.safetensors
try 1 "plain.net" compile trained.net --emit obj --weights plain.net
[ "$(head -1 plain.net)" = "net plain" ] && pass || fail "plain.net was changed"
TMPDIR=/nowhere try 1 "no folder for intermediate files can be made in /nowhere: No such file or directory" compile plain.net
TMPDIR=$work/plain.net try 1 "no folder for intermediate files" compile plain.net
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    cp "$mlc" mlc-copy
    chmod 600 broken.net
    mkdir locked
    "${as_nobody[@]}" ./mlc-copy check broken.net 2>err.txt
    [ $? = 1 ] && grep -q "broken.net cannot be read: Permission denied" err.txt && pass || fail "an unreadable file"
    "${as_nobody[@]}" ./mlc-copy compile plain.net -o locked/plain.o 2>err.txt
    [ $? = 1 ] && grep -q "locked/plain.o cannot be written: Permission denied" err.txt && clean && pass || fail "an unwritable folder"
    chmod 644 broken.net
    rm mlc-copy
fi
"$mlc" ops >/dev/full 2>err.txt
[ $? = 1 ] && grep -q "standard output cannot be written: No space left" err.txt && pass || fail "ops >/dev/full"
"$mlc" compile plain.net --emit c -o - >/dev/full 2>err.txt
[ $? = 1 ] && grep -q "standard output cannot be written: No space left" err.txt && pass || fail "compile -o - >/dev/full"

# --- @file, colours, JSON ------------------------------------------------------------------------------------------------
printf 'plain.net --emit\n "c" -o '\''a b.c'\''\n' >args
try 0 "" compile @args
[ -s "a b.c" ] && pass || fail "@args"
try 2 "missing cannot be read" compile @missing
printf '@loop' >loop
try 2 "nested deeper than" compile @loop
try 2 "unknown option --emti" compile "@$(printf 'plain.net --emti' >bad; echo bad)"
esc=$(printf '\033')
colored() { "$mlc" check broken.net "$@" 2>&1 >/dev/null | grep -q "$esc"; }
colored && fail "colours in a pipe" || pass
colored --color always && pass || fail "--color always"
CLICOLOR_FORCE=1 colored && pass || fail "CLICOLOR_FORCE"
FORCE_COLOR=1 colored && pass || fail "FORCE_COLOR"
NO_COLOR=1 CLICOLOR_FORCE=1 colored && fail "NO_COLOR" || pass
NO_COLOR=1 colored --color=always && pass || fail "--color goes before NO_COLOR"
CLICOLOR_FORCE=1 colored --color never && fail "--color never" || pass
for args in "check broken.net" "check missing.net" "compile plain.net --emti c" "check broken.net --color always" "xyzzy"; do
    # shellcheck disable=SC2086
    "$mlc" $args --diagnostics json >out.txt 2>err.txt
    grep -v '^{"severity":"[a-z]*","code":"[EW][0-9]*","message":".*"rendered":".*"}$' err.txt | grep -q . && fail "json: mlc $args" || pass
    [ -s err.txt ] && pass || fail "json: mlc $args says nothing"
done
"$mlc" compile plain.net --emit c -o - --time --diagnostics json 2>err.txt >/dev/null
[ -s err.txt ] && fail "--time beside JSON" || pass
try 0 "" --version
grep -qx "mlc [0-9]*\.[0-9]*\.[0-9]*" out.txt && [ "$(wc -l <out.txt)" = 1 ] && pass || fail "--version"
try 0 "" --version -v
grep -q zlib out.txt && pass || fail "--version -v"
printf 'net w\n\ninput x: f32[N, 4]\nz = relu(x)\noutput y = relu(x)\n' >warns.net
try 0 "warning:" check warns.net
try 0 "" check warns.net -Wno-unread
try 1 "error:" check warns.net -Werror
try 1 "error:" check warns.net -Werror=unread
try 1 "--max-errors 1" check broken.net --max-errors 1

# --- fmt -----------------------------------------------------------------------------------------------------------------
printf 'net f\ninput   x:f32[N,4]\noutput y=relu( x )\n' >ugly.net
cp ugly.net keep.net
try 1 "" fmt --check ugly.net plain.net
[ "$(cat out.txt)" = ugly.net ] && cmp -s ugly.net keep.net && pass || fail "fmt --check names what would change"
try 0 "" fmt ugly.net
try 0 "" fmt --check ugly.net
try 1 "error:" fmt broken.net empty.net missing.net

# --- what is printed from the rows ---------------------------------------------------------------------------------------
for verb in $verbs; do
    try 0 "" "$verb" --help
    grep -q "^usage: mlc $verb" out.txt && grep -q "^Example" out.txt && pass || fail "mlc $verb --help"
    "$mlc" --help | grep -q "^  $verb" && pass || fail "mlc --help lacks $verb"
done
"$mlc" options >options.txt
"$mlc" man >mlc.1
for name in $(sed -n 's/^OPTION([a-z_]*, "\([^"]*\)", "\([^"]*\)".*/\1 \2/p' "$rows"); do
    grep -qF -e "$name" options.txt && pass || fail "mlc options lacks $name"
    grep -qF -e "\"$(printf %s "${name#-}" | sed 's/-/\\-/g')\"" mlc.1 && pass || fail "the manual lacks $name"
done
if command -v mandoc >/dev/null; then
    [ -z "$(mandoc -T lint mlc.1)" ] && pass || { mandoc -T lint mlc.1 | head; fail "mandoc -T lint"; }
fi
for command in ops passes options "ops conv" "explain E0301" "completion zsh" "completion fish"; do
    # shellcheck disable=SC2086
    try 0 "" $command
    [ -s out.txt ] && pass || fail "mlc $command says nothing"
done
# Every option that a verb's help has is taken by its parser, and the other way round.
for verb in $verbs; do
    "$mlc" "$verb" --help | sed -n '/^Options/,/^$/p' | grep -o -e '--[a-z-]*' -e '^  -[A-Za-z]*' | sort -u >help.txt
    grep -q -e --help help.txt && pass || fail "the help of $verb lacks --help"
done

# --- completion ----------------------------------------------------------------------------------------------------------
"$mlc" completion bash >complete.bash
expect "bash -n" bash -n complete.bash
completes() { # expected words, words of the line; the last is being completed
    local want=$1
    shift
    # shellcheck disable=SC2016
    got=$(bash -c 'source complete.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mlc_words; echo "${COMPREPLY[*]}"' _ "$@" | tr ' ' '\n' | sort | tr '\n' ' ')
    [ "$got" = "$want " ] && pass || fail "completion of '$*': $got, not $want"
}
completes "compile completion" mlc comp
completes "exe" mlc compile plain.net --emit ex
completes "exe" mlc compile plain.net --emit = ex
completes "x86-64 x86-64-v2 x86-64-v3 x86-64-v4" mlc compile --target x
completes "--interpret" mlc run --in
completes "" mlc check --in
completes "trained.net" mlc check tr
completes "bash" mlc completion b
completes "fold fold2 fuse" mlc plan --show f
completes "json" mlc check --diagnostics j
completes "E0301" mlc explain E0301
for shell in zsh fish; do
    "$mlc" completion $shell >"complete.$shell"
    if command -v $shell >/dev/null; then expect "$shell -n" $shell -n "complete.$shell"; fi
done
if command -v fish >/dev/null; then
    got=$(HOME=$work fish -c 'source complete.fish; complete -C "mlc compile --emit ex"; complete -C "mlc run --in"' 2>err.txt | cut -f1 | tr '\n' ' ')
    [ "$got" = "exe --interpret " ] && pass || fail "completion of fish: $got"
fi
finish
