#!/bin/sh
# errors.sh BUILD [--bless]: errors/NAME.jaxpr is refused with the messages NAME.want, by --check as well; more options in NAME.args. Then the corpus of wrong
# programs, where it exists: S.expect says LINE:COL, or `ok`; the place is judged for primitives that are supported.
. "$(dirname "$0")/try.sh"
cd tests/errors || exit 1
bless=$2
case $build in */release) seconds=20 ;; *) seconds=200 ;; esac
case $bless in --bless | "") ;; *) echo "unknown option $bless" && exit 2 ;; esac
got=$work/got
# said OPTIONS: of the file; then the status.
said() {
    eval "jaxcc $1 '$file'" >"$got" 2>&1 </dev/null
    echo "status $?" >>"$got"
}
for file in *.jaxpr; do
    [ -f "$file" ] || continue
    want=${file%.jaxpr}.want args=${file%.jaxpr}.args options='-o /dev/null'
    [ -f "$args" ] && options="$options $(cat "$args")"
    said "$options"
    if [ "$bless" ]; then
        cmp -s "$got" "$want" || { cp "$got" "$want" && echo "blessed $want"; }
    elif diff -u "$want" "$got"; then
        count 0
        said "--check $options"
        diff -u "$want" "$got" || count 1 "$file --check"
    else
        count 1 "$file"
    fi
done
[ "$bless" ] && exit 0

corpus=${root%/*}/shared/errors
placed=0
scored=0
for expect in "$corpus"/*.expect; do
    [ -f "$expect" ] || continue
    stem=${expect%.expect} where=
    read -r where rest <"$expect"
    [ "$where" = run ] && continue
    set -- --check
    [ -f "$stem.args" ] && set -- "$@" $(cat "$stem.args")
    [ -f "$stem.sig" ] && set -- "$@" "--in-type=$(head -n 1 "$stem.sig")"
    timeout $seconds jaxcc "$@" "$stem.jaxpr" >"$got" 2>&1
    status=$?
    case $where in
    ok) [ $status = 0 ] || { count 1 "${stem##*/}: must be accepted: $(head -n 1 "$got")"; continue; } ;;
    *)
        [ $status = 1 ] || { count 1 "${stem##*/}: must be refused ($where $rest), but status $status"; continue; }
        case ${stem##*/} in limit-* | syn-deep-unclosed | lex-utf16) count 0 && continue ;; esac
        grep -q 'is not supported yet' "$got" && count 0 && continue
        scored=$((scored + 1))
        grep -m 1 ': error: ' "$got" | grep -q ":$where: error: " && placed=$((placed + 1))
        ;;
    esac
    count 0
done
[ $scored = 0 ] || echo "errors: the first error is at its place in $placed of $scored"
[ $((placed * 10)) -ge $((scored * 9)) ] || count 1 "less than 90 % are placed"
finish
