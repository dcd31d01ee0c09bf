#!/bin/sh
# nested.sh BUILD MODE: programs whose text is linear in N, and of which copies would be 2^N equations (nested.awk). All that reads them is
# linear in their text, and what is one program stays one.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# Many times what these programs need. Of memory in release builds alone: the others load LLVM, and the sanitizers reserve more than there is.
SECONDS_EACH=20
KILOBYTES=300000
[ "$mode" = asan ] && SECONDS_EACH=120
bounded() {
    (
        [ "$mode" != release ] || ulimit -v $KILOBYTES
        timeout $SECONDS_EACH jaxcc -Wno-all "$@"
    ) >log 2>&1
}
within_a_second() {
    (
        [ "$mode" != release ] || ulimit -t 1 # of processor time
        bounded "$@"
    )
}
DEPTH=60
programs() { grep -o '{ lambda' "$1" | wc -l; }
# After the passes there are so many programs: one for each that loops and branches hold, one for each function that they call, and one
# around each such function; a copy of one program would be one more. Loops of scalars that become elementwise are copied, once or twice.
for line in scan:85 cond:89 while:187 lanes:99 key:74 reference:85 references:89 shard_map:119 \
    jit:9 checkpoint:9 closed_call:9 custom_jvp_call:9 custom_vjp_call:9 solve:19 complex:9 constant:9 known:25 mixed:59; do
    kind=${line%:*}
    awk -f "$root/tests/nested.awk" -v kind=$kind -v n=$DEPTH >$kind.jaxpr
    for options in --emit=jaxpr --emit=types=all '--emit=jaxpr -D n=3' '--check --verify' '--check --debug-nans --check-bounds'; do
        bounded $options $kind.jaxpr -o out
        count $? "$kind $options"
    done
    bounded --emit=jaxpr --passes $kind.jaxpr -o out && [ "$(programs out)" = "${line#*:}" ]
    count $? "$kind: programs stay shared, ${line#*:}"
done

# Under --jvp five times over, with a product at the bottom: what is one program stays one, and what is around it is twice as much each time.
DEPTH=20
MOST_TIMES=40
equations() { grep -c ' = ' "$1"; }
for kind in jit closed_call cond scan while; do
    awk -f "$root/tests/nested.awk" -v kind=$kind -v n=$DEPTH | sed 's/= \(add\|sub\) a e$/= mul a a/' >derived.jaxpr
    within_a_second --jvp --jvp --jvp --jvp --jvp --emit=jaxpr derived.jaxpr -o out && bounded --emit=jaxpr derived.jaxpr -o primal &&
        [ "$(equations out)" -gt "$(equations primal)" ] && [ "$(equations out)" -le $((MOST_TIMES * $(equations primal))) ]
    count $? "$kind, five times --jvp"
done
# In reverse: the residuals of one level are those of the level below and a few.
for kind in jit cond; do
    awk -v kind=$kind -v n=$DEPTH 'BEGIN {
        print "let f0 = { lambda ; a:f32[8] i:i32[]. let b:f32[8] = sin a in (b,) } in"
        for (k = 1; k <= n; k++) {
            printf "let f%d = { lambda ; a:f32[8] i:i32[]. let b:f32[8] = sin a; c:f32[8] = ", k
            if (kind == "jit") printf "jit[name=f jaxpr=f%d] b i", k - 1
            else printf "cond[branches=(f%d, { lambda ; a:f32[8] i:i32[]. let b:f32[8] = neg a in (b,) })] i b i", k - 1
            print "; d:f32[8] = mul b c in (d,) } in"
        }
        printf "{ lambda ; a:f32[8] i:i32[]. let b:f32[8] = jit[name=f jaxpr=f%d] a i in (b,) }\n", n
    }' >derived.jaxpr
    within_a_second --vjp --vjp --emit=jaxpr derived.jaxpr -o out && bounded --emit=jaxpr derived.jaxpr -o primal &&
        [ "$(equations out)" -le $((MOST_TIMES * $(equations primal))) ]
    count $? "$kind, --vjp --vjp"
done
# In reverse, where a level runs the one below twice: residuals of all copies are too many, so that they are computed again.
MOST_TIMES=100
for kind in jit closed_call cond scan mixed; do
    awk -f "$root/tests/nested.awk" -v kind=$kind -v n=$DEPTH | sed 's/= \(add\|sub\) a e$/= mul a a/' >derived.jaxpr
    bounded --vjp --emit=jaxpr derived.jaxpr -o out && bounded --emit=jaxpr derived.jaxpr -o primal && [ "$(equations out)" -le $((MOST_TIMES * $(equations primal))) ]
    count $? "$kind twice, --vjp"
done

# Loops around a sort, which are not split into elements: each is tried once, not once for each loop around it.
awk 'function nest(k) {
    if (k == 0) return "sort[dimension=0 is_stable=True num_keys=1] b"
    return "while[body_jaxpr={ lambda ; b:f32[n]. let s:bool[n] = lt b 1.0:f32[]\n y:f32[n] = " nest(k - 1) "\n e:f32[n] = select_n s b y in (e,) } body_nconsts=0 " \
           "cond_jaxpr={ lambda ; b:f32[n]. let s:bool[n] = lt b 1.0:f32[]\n p:bool[] = reduce_or[axes=(0,)] s in (p,) } cond_nconsts=0] b"
}
BEGIN { print "{ lambda ; b:f32[n]. let y:f32[n] = " nest(300) "\n in (y,) }" }' </dev/null >sorts.jaxpr
bounded --emit=jaxpr --passes sorts.jaxpr
count $? "loops around a sort"

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
    bounded $kind.jaxpr -o $kind.so && jaxcc-run $kind.so zeros.npy >log 2>&1
    ran=$?
    want=$(awk -f "$root/tests/nested.awk" -v kind=$kind -v n=14 -v run=1)
    [ $ran = 0 ] && [ "$(tr ' []' '\n' <log | grep -cx -- "$want\.*0*")" = 8 ]
    count $? "$kind gives $want"
done

# A function of 70 equations that is called 60 times: effects are in order; NaNs that the program writes and only moves are not reported,
# those that the function makes are, at their place. function STEP.
function() {
    awk -v step="$1" 'BEGIN {
        print "let f = { lambda ; a:f32[8] n:i32[] w:f32[8]. let"
        for (k = 0; k < 70; k++) printf "    v%d:f32[8] = add %s %s:f32[]\n", k, k ? "v" (k - 1) : "a", step
        print "    debug_print[fmt=turn {} has_placeholders=True in_tree=PyTreeDef(((*,), {}))] n"
        print "    m:i32[] = add n 1:i32[]\n    s:f32[8] = rev[dimensions=(0,)] w\n    l:f32[8] = log v69\n  in (v69, m, s, l) } in"
        print "{ lambda ; a:f32[8]. let\n    w:f32[8] = broadcast_in_dim[broadcast_dimensions=() shape=(8,) sharding=None] nan:f32[]"
        for (k = 0; k < 60; k++)
            printf "    a%d:f32[8] n%d:i32[] s%d:f32[8] l%d:f32[8] = jit[name=f jaxpr=f] %s %s %s\n", k, k, k, k,
                k ? "a" (k - 1) : "a", k ? "n" (k - 1) : "0:i32[]", k ? "s" (k - 1) : "w"
        print "    r:f32[8] = rev[dimensions=(0,)] s59\n  in (a59, r) }"
    }' >function.jaxpr
    bounded function.jaxpr --debug-nans -o function.so && jaxcc-run function.so zeros.npy >log 2>&1
}
function 1.0
ran=$?
awk 'BEGIN { for (k = 0; k < 60; k++) print "turn " k }' >turns
[ $ran = 0 ] && grep '^turn' log | cmp -s - turns
count $? "a function prints in order"
! function -1.0 && grep -q 'function.jaxpr:75:16: log makes a NaN' log
count $? "a function that makes a NaN says where"

finish
