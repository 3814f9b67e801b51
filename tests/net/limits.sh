#!/bin/bash
# limits.sh MLC: files that want to take all the memory, all the stack or all the time, and files that are no files. Each
# is refused by a message (exit 1) or read (exit 0), within two seconds and 600 MB, and never by a signal.
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
passed=0
failed=0
ulimit -v 600000

# expect CODE TEXT FILE [options]: the exit code, and what standard error has (or "" for nothing).
expect() {
    code=$1
    text=$2
    shift 2
    timeout 20 "$mlc" check "$@" >out.txt 2>err.txt
    got=$?
    said=1
    if [ -z "$text" ]; then [ ! -s err.txt ] && said=0; else grep -qF -- "$text" err.txt && said=0; fi
    if [ $got -eq "$code" ] && [ $said -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $* (exit $got, wanted $code: $text)"
        head -c 600 err.txt
    fi
}

repeated() { head -c "$2" /dev/zero | tr '\0' "$1"; }    # a character so many times
net='net t
input x: f32[N, 4]
'

# depth
{ printf '%soutput y = ' "$net"; repeated '(' 100000; printf x; repeated ')' 100000; echo; } >parens.net
expect 1 net_nesting parens.net
{ printf '%soutput y = x' "$net"; for ((i = 0; i < 20000; i++)); do printf ' + x'; done; echo; } >sums.net
expect 1 net_expression_depth sums.net
{ printf '%sy = ' "$net"; repeated '-' 100000; echo 'x'; echo 'output y'; } >signs.net
expect 1 net_expression_depth signs.net
{ echo "$net"; for ((i = 0; i < 300; i++)); do echo 'if true {'; done; } >bodies.net
expect 1 net_nesting bodies.net
{ echo "$net"; printf 'output y = x'; repeated '[' 50000; echo; } >indices.net
expect 1 net_nesting indices.net
{ echo "$net"; for ((i = 0; i < 300; i++)); do echo "block f$i(x) { f$((i + 1))(x) }"; done; echo 'block f300(x) { x }'; echo 'output y = f0(x)'; } >blocks.net
expect 1 net_block_depth blocks.net

# counts and sizes
printf '%srepeat i in 0..9999999 { x2 = relu(x) }\noutput y = x\n' "$net" >count.net
expect 1 net_list_length count.net
printf '%srepeat i in 0..9223372036854775807 { x2 = relu(x) }\noutput y = x\n' "$net" >count64.net
expect 1 net_list_length count64.net
printf '%sh = x\nrepeat i in 0..999 { repeat k in 0..999 { h = relu(h) } }\noutput y = h\n' "$net" >square.net
expect 1 net_statements square.net
printf '%sh = x\nloop t in 0..99999999 { h = relu(h) }\noutput y = h\n' "$net" >loop.net
expect 1 net_list_length loop.net
printf '%sl = [0]\nrepeat i in 0..40 { l = [l, l] }\noutput y = x\n' "$net" >double.net
expect 0 '' double.net
printf '%sl = "a"\nrepeat i in 0..60 { l = "{l}{l}" }\noutput y = dense(x, 1) @"{l}"\n' "$net" >text.net
expect 1 net_text_bytes text.net
printf '%soutput y = x * 9223372036854775808\n' "$net" >number.net
expect 1 'does not fit into 64 bits' number.net
printf '%soutput y = dense(x, 9223372036854775807)\n' "$net" >weight.net
expect 1 'weight.net:' weight.net
printf '%soutput y = dense(dense(x, 2000000000), 2000000000)\n' "$net" >weights.net
expect 1 net_param_bytes weights.net
printf 'net t\ninput x: f32[N, 3000000000, 3000000000, 3000000000]\noutput y = reshape(x, [-1])\n' >elements.net
expect 1 'elements.net:' elements.net
printf 'net t\ninput x: f32[N, 4294967296, 4294967296]\noutput y = sum(x)\n' >input.net
expect 1 'does not fit into 64 bits' input.net
printf '%soutput y = x * 2^63\n' "$net" >power.net
expect 1 'does not fit into 64 bits' power.net
printf 'net t\ninput x: f32[N, 1, 1, 1, 1, 1, 1, 1, 1]\noutput y = x\n' >rank.net
expect 1 'graph_rank' rank.net
{ printf '%soutput y = [' "$net"; for ((i = 0; i < 70000; i++)); do printf '1,'; done; echo '1]'; } >list.net
expect 1 net_list_length list.net
{ printf '%s' "$net"; printf 'output y = dense(x, 1) @'; repeated a 3000; echo; } >name.net
expect 1 graph_name_bytes name.net
{ printf '%s' "$net"; repeated a 100000; echo ' = x'; } >word.net
expect 1 net_token_bytes word.net

# imports
printf 'import "b.net"\nblock f(x) { x }\n' >a.net
printf 'import "a.net"\n' >b.net
printf 'import "a.net"\n%soutput y = f(x)\n' "$net" >cycle.net
expect 1 'imports itself' cycle.net
printf 'import "self.net"\n%soutput y = x\n' "$net" >self.net
expect 1 'imports itself' self.net
mkdir folder.net
printf 'import "folder.net"\n%soutput y = x\n' "$net" >directory.net
expect 1 'cannot be read' directory.net
expect 1 'cannot be read' folder.net
expect 1 'cannot be read' no_such_file.net
printf 'import "no_such_file.net"\n%soutput y = x\n' "$net" >missing.net
expect 1 'cannot be read' missing.net
printf 'import "../a.net"\n%soutput y = x\n' "$net" >outside.net
expect 1 'outside of the folder' outside.net
printf 'import "/etc/passwd"\n%soutput y = x\n' "$net" >absolute.net
expect 1 'outside of the folder' absolute.net
mkfifo pipe.net
printf 'import "pipe.net"\n%soutput y = x\n' "$net" >fifo.net
expect 1 'cannot be read' fifo.net
for ((i = 0; i < 40; i++)); do printf 'import "chain%d.net"\n' $((i + 1)) >chain$i.net; done
printf 'block f(x) { x }\n' >chain40.net
printf 'import "chain0.net"\n%soutput y = f(x)\n' "$net" >chain.net
expect 1 net_import_depth chain.net

# bytes
{ printf '%soutput y = x\n' "$net"; for ((i = 0; i < 100; i++)); do printf '# '; repeated z 100000; echo; done; } >large.net
expect 1 net_file_bytes large.net
printf 'net t\ninput x: f32[N, 4]\n# a\000b\noutput y = x\n' >nul.net
expect 1 'U+0000' nul.net
printf 'net t\ninput x: f32[N, 4]\n# \377\376\noutput y = x\n' >bytes.net
expect 1 'not UTF-8' bytes.net
printf 'net t\ninput x: f32[N, 4]\n# \355\240\200\noutput y = x\n' >surrogate.net
expect 1 'not UTF-8' surrogate.net
printf 'net t\ninput x: f32[N, 4]\n# \300\200\noutput y = x\n' >overlong.net
expect 1 'not UTF-8' overlong.net
printf 'net t\ninput x: f32[N, 4]\n# \342\200\256 turned\noutput y = x\n' >bidi.net
expect 1 'U+202E' bidi.net
printf 'net t\r\ninput x: f32[N, 4]\r\noutput y = relu(\r\n    x)  # caf\303\251\r\n' >crlf.net
expect 0 '' crlf.net
printf '\357\273\277net t\ninput x: f32[N, 4]\noutput y = x\n' >bom.net
expect 0 '' bom.net
printf 'net t\ninput x: f32[N, 4]\noutput y = x' >no_newline.net
expect 0 '' no_newline.net
printf '' >empty.net
expect 1 'has no net' empty.net
printf 'net t\rinput x: f32[N, 4]\routput y = x\r' >cr.net
expect 1 'U+000D' cr.net
head -c 100000 "$mlc" >binary.net
expect 1 'binary.net' binary.net

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
