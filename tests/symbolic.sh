#!/bin/sh
# symbolic.sh BUILD LEAST AGREE [--transform FLAG] OPTION... DIR: the cases of DIR again, with symbols for the leading dimensions of their
# inputs; the part LEAST of them must get one (tests/symbolic.c), of these the part AGREE must give what they gave or, with --transform,
# what the program without symbols gives under FLAG.
build=$1 least=$2 agree=$3 name=symbolic
shift 3
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
how=
[ "$1" = --transform ] && how="$1 $2" && name="symbolic $(echo "$2" | tr -dc a-z)" && shift 2
"$build/tests/symbolic" --least "$least" "$@" "$to/cases" || exit
"$build/tests/runner" --min-pass "$agree" $how "$to/cases" >"$to/log"
status=$?
sed "s/^cases:/$name:/;s/^all cases/symbolic cases/" "$to/log"
exit $status
