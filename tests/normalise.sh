#!/bin/sh
# normalise.sh BUILD DIR [tidy]: the programs of the cases of DIR as transformations would take them, or as they would leave them tidied
# (normalise.c); those that this changes are compiled from what is printed of them, and must give what they gave.
build=$1
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
"$build/tests/normalise" "$2" "$to/cases" $3 || exit
"$build/tests/runner" --min-pass 1 ${3:+--extra -O0} "$to/cases" >"$to/log"
status=$?
sed 's/^cases:/normalised:/;s/^all cases/normalised cases/' "$to/log"
exit $status
