#!/bin/sh
# errors.sh BUILD [--bless]: errors/NAME.jaxpr is refused with the messages NAME.want, by --check as well; more options in NAME.args. Then the corpus of wrong
# programs, where it exists: S.expect says LINE:COL, or `ok`; the place is judged for primitives that are supported.
cd "$(dirname "$0")/errors" || exit 1
case $1 in /*) bin=$1/bin ;; *) bin=$OLDPWD/$1/bin ;; esac
bless=$2
case $bin in */release/*) seconds=20 ;; *) seconds=200 ;; esac
case $bless in --bless | "") ;; *) echo "unknown option $bless" && exit 2 ;; esac
passed=0
failed=0
got=$(mktemp)
trap 'rm -f "$got"' EXIT
export NO_COLOR=1
fail() {
    failed=$((failed + 1))
    echo "FAIL errors/$*"
}
for file in *.jaxpr; do
    [ -f "$file" ] || continue
    want=${file%.jaxpr}.want args=${file%.jaxpr}.args options='-o /dev/null'
    [ -f "$args" ] && options="$options $(cat "$args")"
    eval "'$bin/jaxcc' $options '$file'" >"$got" 2>&1 </dev/null
    echo "status $?" >>"$got"
    if [ "$bless" ]; then
        cmp -s "$got" "$want" || { cp "$got" "$want" && echo "blessed $want"; }
    elif diff -u "$want" "$got"; then
        passed=$((passed + 1))
        eval "'$bin/jaxcc' --check $options '$file'" >"$got" 2>&1 </dev/null
        echo "status $?" >>"$got"
        diff -u "$want" "$got" || fail "$file --check"
    else
        fail "$file"
    fi
done
[ "$bless" ] && exit 0

corpus=$(cd ../../.. && pwd)/shared/errors
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
    timeout $seconds "$bin/jaxcc" "$@" "$stem.jaxpr" >"$got" 2>&1
    status=$?
    case $where in
    ok) [ $status = 0 ] || { fail "${stem##*/}: must be accepted: $(head -n 1 "$got")"; continue; } ;;
    *)
        [ $status = 1 ] || { fail "${stem##*/}: must be refused ($where $rest), but status $status"; continue; }
        case ${stem##*/} in limit-* | syn-deep-unclosed | lex-utf16) passed=$((passed + 1)) && continue ;; esac
        grep -q 'is not supported yet' "$got" && passed=$((passed + 1)) && continue
        scored=$((scored + 1))
        grep -m 1 ': error: ' "$got" | grep -q ":$where: error: " && placed=$((placed + 1))
        ;;
    esac
    passed=$((passed + 1))
done
[ $scored = 0 ] || echo "errors: the first error is at its place in $placed of $scored"
[ $((placed * 10)) -ge $((scored * 9)) ] || fail "less than 90 % are placed"
echo "errors: $passed passed, $failed failed"
[ $failed = 0 ]
