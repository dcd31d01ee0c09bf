#!/bin/sh
# roundtrip.sh BUILD DIR...: every .jaxpr of the folders parses, and what is printed parses again to the same text.
build=$1
shift
bin=$(cd "$build/bin" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for dir; do
    [ -d "$dir" ] && find "$dir" -name '*.jaxpr' ! -path '*/errors/*' ! -name 'cat-neg-*'
done | while read -r file; do
    # wrong programs are the business of errors.sh
    [ -f "${file%.jaxpr}.expect" ] && ! grep -q '^\(ok\|run\)' "${file%.jaxpr}.expect" || echo "$file"
done >"$work/list"
# shellcheck disable=SC2016
xargs -a "$work/list" -P "$(nproc)" -n 50 sh -c '
    one=$(mktemp "$1/XXXXXX") two=$one.two
    bin=$2
    shift 2
    for file; do
        if ! "$bin/jaxcc" --emit=jaxpr --no-check "$file" >"$one" 2>"$two"; then echo "FAIL roundtrip $file: $(head -n 1 "$two")"
        elif ! "$bin/jaxcc" --emit=jaxpr --no-check - <"$one" >"$two" 2>&1; then echo "FAIL roundtrip $file, printed: $(head -n 1 "$two")"
        elif ! cmp -s "$one" "$two"; then echo "FAIL roundtrip $file: prints another program"
        fi
    done' sh "$work" "$bin" >"$work/failed"
head -n 40 "$work/failed"
all=$(wc -l <"$work/list") failed=$(wc -l <"$work/failed")
echo "roundtrip: $((all - failed)) passed, $failed failed"
[ "$failed" = 0 ]
