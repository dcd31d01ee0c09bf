#!/bin/sh
# normalise.sh BUILD DIR: the programs of the cases of DIR as transformations would take them (normalise.c); those that this changes are
# compiled from what is printed of them, and must give what they gave.
build=$1
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
"$build/tests/normalise" "$2" "$to/cases" || exit
"$build/tests/runner" --min-pass 1 "$to/cases" >"$to/log"
status=$?
sed 's/^cases:/normalised:/;s/^all cases/normalised cases/' "$to/log"
exit $status
