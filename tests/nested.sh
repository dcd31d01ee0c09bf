#!/bin/sh
# nested.sh BUILD MODE: programs whose text is linear in N, and of which copies would be 2^N equations (nested.awk). All that reads them is
# linear in their text, and what is one program stays one.
cd "$(dirname "$0")/.." || exit 1
case $1 in /*) build=$1 ;; *) build=$PWD/$1 ;; esac
mode=$2
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0
count() {
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL nested: $2"
        head -n 10 log
    fi
}
# Many times what these programs need. The sanitizers reserve more than there is.
SECONDS_EACH=20
KILOBYTES=700000
[ "$mode" = asan ] && SECONDS_EACH=120
bounded() {
    (
        [ "$mode" = asan ] || ulimit -v $KILOBYTES
        timeout $SECONDS_EACH "$build/bin/jaxcc" -Wno-all "$@"
    ) >log 2>&1
}
DEPTH=60
programs() { grep -o '{ lambda' "$1" | wc -l; }
for kind in scan cond while lanes key reference references shard_map \
    jit checkpoint closed_call custom_jvp_call custom_vjp_call solve complex constant known mixed; do
    awk -f "$root/tests/nested.awk" -v kind=$kind -v n=$DEPTH >$kind.jaxpr
    for options in --emit=jaxpr --emit=types=all '--emit=jaxpr -D n=3' '--check --verify' '--check --debug-nans --check-bounds'; do
        bounded $options $kind.jaxpr -o out
        count $? "$kind $options"
    done
    # Each function that loops or branches call has a program around it, so has each shard_map.
    bounded --emit=jaxpr --passes $kind.jaxpr -o out && [ "$(programs out)" -le $((2 * $(programs $kind.jaxpr))) ]
    count $? "$kind: programs stay shared"
done

# Compiled: small, and right.
BYTES=200000
{
    printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }"
    head -c 32 /dev/zero
} >zeros.npy
for kind in scan cond while jit mixed known; do
    bounded $kind.jaxpr -o $kind.so && [ "$(wc -c <$kind.so)" -le $BYTES ]
    count $? "$kind compiles"
    awk -f "$root/tests/nested.awk" -v kind=$kind -v n=14 >$kind.jaxpr
    bounded $kind.jaxpr -o $kind.so && "$build/bin/jaxcc-run" $kind.so zeros.npy >log 2>&1
    ran=$?
    want=$(awk -f "$root/tests/nested.awk" -v kind=$kind -v n=14 -v run=1)
    [ $ran = 0 ] && [ "$(tr ' []' '\n' <log | grep -cx -- "$want\.*0*")" = 8 ]
    count $? "$kind gives $want"
done

echo "nested: $passed passed, $failed failed"
exit $((failed > 0))
