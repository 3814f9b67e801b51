# common.sh: what the tests of the command line share. Sourced with the arguments MLC and, if any, another tool ($second); leaves the shell in an empty
# folder, where TMPDIR is `tmp`, and nothing may stay in there.
set -u
mlc=$(cd "$(dirname "$1")" && pwd -P)/$(basename "$1")
[ $# -lt 2 ] || second=$(cd "$(dirname "$2")" && pwd -P)/$(basename "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
work=$(mktemp -d) || exit 2
chmod 755 "$work"
trap 'cd /; umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 2
mkdir tmp
chmod 1777 tmp
export TMPDIR=$work/tmp LC_ALL=C
unset CC MLC_HOME NO_COLOR CLICOLOR_FORCE FORCE_COLOR
passed=0 failed=0

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAIL $*"
    [ -s out.txt ] && sed 's/^/    out: /' out.txt | head -5
    [ -s err.txt ] && sed 's/^/    err: /' err.txt | head -12
    return 0
}

# Nothing private is left, and nothing half-made beside a result.
clean() { [ -z "$(ls -A tmp)" ] && ! ls -A . | grep -q '\.tmp-'; }

# try CODE PATTERN ARGS...: mlc ends with CODE, and PATTERN (a fixed string, "" for silence) is on stderr.
try() {
    local code=$1 pattern=$2 got
    shift 2
    "$mlc" "$@" >out.txt 2>err.txt </dev/null
    got=$?
    if [ $got != "$code" ]; then
        fail "mlc $*: exit code $got, not $code"
    elif [ -z "$pattern" ] && [ -s err.txt ]; then
        fail "mlc $*: says something"
    elif [ -n "$pattern" ] && ! grep -qF -e "$pattern" err.txt; then
        fail "mlc $*: does not say '$pattern'"
    elif ! clean; then
        fail "mlc $*: leaves $(ls -A tmp . | tr '\n' ' ')"
        rm -rf tmp/* ./*.tmp-*
    else
        pass
    fi
}

# expect WHAT COMMAND...: the command succeeds.
expect() {
    local what=$1
    shift
    if "$@" >out.txt 2>err.txt; then pass; else fail "$what"; fi
}

finish() {
    echo "$passed passed, $failed failed"
    [ $failed = 0 ]
}
