#!/bin/sh
# normalise.sh BUILD DIR [tidy] [OPTION...]: the programs of the cases of DIR as transformations would take them, or as they would leave them tidied
# (normalise.c); those that this changes are compiled from what is printed of them, and must give what they gave. OPTIONs are the runner's.
build=$1 dir=$2 tidy=
shift 2
[ "$1" = tidy ] && tidy=tidy && shift
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
"$build/tests/normalise" "$dir" "$to/cases" $tidy || exit
"$build/tests/runner" --min-pass 1 ${tidy:+--extra -O0} "$@" "$to/cases" >"$to/log"
status=$?
sed 's/^cases:/normalised:/;s/^all cases/normalised cases/' "$to/log"
exit $status
