#!/usr/bin/env bash
# Each optimizer, compiled: its weights after 20 updates are those recorded in answers.txt. Usage: run.sh MLC [CC]
set -u
mlc=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
cc=${2:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0

# try CASE 'OPTIMIZER LINES'
try() {
    cat >net.net <<END
net n
input x: f32[N, 4]
output y = dense(dense(x, 6) @a, 3, bias = false) @b
train {
    target t: f32[N, 3]
    loss = mse(y, t)
    data csv("x.csv") { x = columns(0..3); t = columns(4..6) }
    batch = 1
    steps = 20
    $2
}
END
    if "$mlc" compile net.net --emit train_c -o net.c >said.txt 2>&1 &&
        $cc -std=c11 -O1 -Wall -Wextra -Werror -fopenmp-simd -ffp-contract=off -I"$here/../../runtime" net.c "$here/update.c" -lm -o net >said.txt 2>&1 &&
        ./net "$here/answers.txt" "$1" >said.txt 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: $(head -n 5 said.txt)"
    fi
}

try sgd 'optimizer = sgd(lr = 1e-2, momentum = 0.9, weight_decay = 0.01, nesterov = true)'
try adam 'optimizer = adam(lr = 2e-3, weight_decay = 0.01)'
try adamw 'optimizer = adamw(lr = 2e-3, betas = [0.8, 0.95], weight_decay = 0.1)'
try rmsprop 'optimizer = rmsprop'
try rmsprop_centered 'optimizer = rmsprop(lr = 1e-3, alpha = 0.9, eps = 1e-6, weight_decay = 0.1, momentum = 0.8, centered = true)'
try adagrad 'optimizer = adagrad'
try adagrad_all 'optimizer = adagrad(lr = 2e-2, lr_decay = 0.05, weight_decay = 0.1, initial_accumulator_value = 0.1, eps = 1e-8)'
try lamb 'optimizer = lamb(lr = 2e-2)'
try lion 'optimizer = lion(lr = 3e-3, weight_decay = 0.1)'
try muon 'optimizer = sgd(lr = 1e-2)
    optimizer = muon(lr = 1e-2) for @*.weight'
try muon_rms 'optimizer = sgd(lr = 1e-2)
    optimizer = muon(lr = 2e-3, weight_decay = 0.2, momentum = 0.9, nesterov = false, ns_coefficients = [2, -1.5, 0.5], eps = 1e-6, ns_steps = 8, match_rms = true) for @*.weight'
try mixed 'optimizer = adamw(lr = 2e-3)
    optimizer = muon(lr = 2e-2) for @*.weight'
try groups 'optimizer = adamw(lr = 2e-3, weight_decay = 0.1) { weight_decay = 0 for biases; lr = 0.1 * lr for @b.* }'
try ema 'optimizer = sgd(lr = 0.1, momentum = 0.9)
    ema = 0.9'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
