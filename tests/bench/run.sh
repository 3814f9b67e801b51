#!/usr/bin/env bash
# Times the training programs of nets/*.net side by side with PyTorch and JAX and prints the table; arguments go to compare.py.
# Usage: run.sh [--nets digits,mlp,cnn] [--peers eager,compile,jax] [--threads N] [--rounds N] [--seconds S]
# PEER_PYTHON names a Python that has torch and jax; without it they are installed below build/ (several GB). MLC names an mlc.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mlc=${MLC:-$root/build/mlc}
if [ ! -x "$mlc" ]; then
    echo "building mlc"
    cmake -S "$root" -B "$root/build" >/dev/null
    cmake --build "$root/build" -j2 --target mlc --target mlrt >/dev/null
fi
python=${PEER_PYTHON:-$root/build/peers/bin/python}
if [ ! -x "$python" ]; then
    echo "installing torch and jax in $root/build/peers"
    python3 -m venv "$root/build/peers"
    "$python" -m pip install --quiet -r "$here/requirements.txt"
fi
exec "$python" "$here/compare.py" "$mlc" "$@"
