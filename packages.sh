#!/usr/bin/env bash
# Installs the Debian packages that are named and missing; where that is not possible, says which. Usage: packages.sh PACKAGE…
set -u
missing=()
for p in "$@"; do dpkg -s "$p" >/dev/null 2>&1 || missing+=("$p"); done
[ ${#missing[@]} = 0 ] && exit 0
echo "installing: ${missing[*]}"
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null && exit 0
echo "please install: apt-get install ${missing[*]}" >&2
exit 1
