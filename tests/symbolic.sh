#!/bin/sh
# symbolic.sh BUILD LEAST AGREE OPTION... DIR: the cases of DIR again, with symbols for the leading dimensions of their inputs;
# the part LEAST of them must get one (tests/symbolic.c), of these the part AGREE must give what they gave.
build=$1 least=$2 agree=$3
shift 3
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
"$build/tests/symbolic" --least "$least" "$@" "$to/cases" || exit
"$build/tests/runner" --min-pass "$agree" "$to/cases" >"$to/log"
status=$?
sed 's/^cases:/symbolic:/;s/^all cases/symbolic cases/' "$to/log"
exit $status
