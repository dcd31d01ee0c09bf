#!/bin/sh
# shared.sh BUILD MODE: programs whose levels hold the level below several times: 2^N equations if bodies were copied, a text that is
# linear in N. Time, memory and the size of the library grow with the text. tests/cases/shared-* compares the results of such programs.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# Of processor time, for 60 levels of other kinds than scans more; copies of 14 levels took 3 GB. The sanitizers take longer and reserve more than there is.
SECONDS_EACH=1
MORE_SECONDS=4
KILOBYTES=300000
BYTES=120000
check() {
    (
        [ "$mode" = release ] && ulimit -t $2 && ulimit -v $KILOBYTES
        jaxcc "$1.jaxpr" -o "$1.so"
    ) >log 2>&1
    status=$?
    size=$(wc -c <"$1.so" 2>>log) || size=$BYTES
    [ $status = 0 ] && { [ "$mode" != release ] || [ "$size" -lt $BYTES ]; }
    count $? "$1: status $status, $size bytes"
}
# LEVEL BELOW: each kind of body, its operands a scalar and an array
scans() {
    scan="scan[jaxpr=f$2 length=1 linear=(False,False) num_carry=2 num_consts=0 reverse=False unroll=1 _split_transpose=False]"
    echo "let f$1 = { lambda ; i:i32[] a:f32[8]. let j:i32[] b:f32[8] = $scan i a k:i32[] c:f32[8] = $scan j b in (k, c) } in"
}
conds() {
    echo "let f$1 = { lambda ; i:i32[] a:f32[8]. let
        j:i32[] b:f32[8] = cond[branches=( f$2 f$2 )] i i a k:i32[] c:f32[8] = cond[branches=( f$2 f$2 )] j j b in (k, c) } in"
}
whiles() {
    while="while[body_jaxpr=f$2 body_nconsts=0 cond_jaxpr={ lambda ; i:i32[] a:f32[8]. let b:bool[] = lt i 9:i32[] in (b,) } cond_nconsts=0]"
    echo "let f$1 = { lambda ; i:i32[] a:f32[8]. let j:i32[] b:f32[8] = $while i a k:i32[] c:f32[8] = $while j b in (k, c) } in"
}
calls() {
    call="jit[name=f$2 jaxpr=f$2]"
    echo "let f$1 = { lambda ; i:i32[] a:f32[8]. let j:i32[] b:f32[8] = $call i a k:i32[] c:f32[8] = $call j b in (k, c) } in"
}
# KIND N
program() {
    echo "let f0 = { lambda ; i:i32[] a:f32[8]. let j:i32[] = add i 1:i32[] b:f32[8] = sin a in (j, b) } in"
    level=1
    while [ $level -le "$2" ]; do
        "$1" $level $((level - 1))
        level=$((level + 1))
    done
    scans top $((level - 1)) | sed 's/^let ftop = //; s/ in$//'
}
for case in scans-14 scans-30 scans-60 conds-20 conds-60 whiles-20 whiles-60 calls-20 calls-60; do
    program ${case%-*} ${case#*-} >$case.jaxpr
    case $case in scans-60 | *-14 | *-20 | *-30) check $case $SECONDS_EACH ;; *) check $case $MORE_SECONDS ;; esac
done
finish
