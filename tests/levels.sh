#!/bin/sh
# levels.sh BUILD: -march with several levels: the library does what the one for the highest level does that the CPU can run, of which levels.c takes
# features away, and fails on a CPU that cannot run the lowest.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
cat >model.jaxpr <<'X'
{ lambda ; x:f32[b,300] w:f32[300,21]. let
    y:f32[b,21] = dot_general[dimension_numbers=(([1], [0]), ([], []))] x w
    z:f32[b,21] = tanh y
    v:f32[b,300] = exp x
    s:f32[b] = reduce_sum[axes=(1,)] v
  in (z, s) }
X
build_for() {
    jaxcc -march="$1" model.jaxpr -o "$1/model.a" && cc -std=c17 -I"$1" -I"$root/runtime" "$root/tests/levels.c" "$1/model.a" -lm -ldl -pthread -o "$2"
}
all=x86-64-v4,x86-64-v2,haswell,x86-64-v3
mkdir x86-64-v2 x86-64-v3 x86-64-v4 $all
for level in 2 3 4; do succeeds build_for x86-64-v$level v$level; done
succeeds build_for $all all
# as LEVEL FEATURE...: without the features the library does what that of the level does.
as() {
    level=$1
    shift
    ./all "$@" >got && ./$level >want && cmp want got
}
differ() { ! cmp -s "$1" "$2"; }
./v2 >is2 && ./v3 >is3 && ./v4 >is4
succeeds differ is2 is3
try "v3 without AVX-512" as v3 avx512f
try "v2 without AVX2" as v2 avx512f avx2
if grep -q lacks is4; then try "v3 on this CPU" as v3; else
    succeeds differ is3 is4
    try "v4 on this CPU" as v4
fi
lacks() { ./all avx512f avx2 sse4.2 >got && grep 'this CPU lacks.*sse4.2' got; }
succeeds lacks
# A vector of x86-64-v2 is one complex128.
one_lane() { jaxcc "$root/tests/cases/derivative-jvp-reductions.jaxpr" --jvp -march=x86-64-v2 -o one.so; }
try "elements as wide as a vector" one_lane
mkdir native x86-64-v2,native
succeeds build_for native here
succeeds build_for x86-64-v2,native too
same() { ./here >want && ./too >got && cmp want got; }
try "native in a list" same
grep -q lacks is3 || succeeds differ got is2
refused() { ! jaxcc -march="$1" model.jaxpr -o no.so 2>said && grep "$2" said; }
succeeds refused x86-64-v3,x86-64-v5 "unknown CPU 'x86-64-v5'; did you mean"
succeeds refused x86-64-v3, "unknown CPU ''"
finish
