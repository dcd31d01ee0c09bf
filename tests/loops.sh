#!/bin/sh
# loops.sh BUILD: the loops in emitted code: none for a single iteration, addresses, masks of loads, and literals.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# emits NAME LOOPS: that many loops in the text of LLVM.
emits() {
    jaxcc "$1.jaxpr" -march=x86-64-v3 --emit=llvm -o "$1.ll" || return
    loops=$(grep -c '= phi i64' "$1.ll")
    [ "$loops" = "$2" ] || { echo "$1: $loops loops"; return 1; }
}
# Copies of a loop's body, and the elements of a window, are at constant distances: few addresses are computed.
addresses() {
    jaxcc pool.jaxpr -march=x86-64-v3 --emit=llvm -o pool.ll || return
    computed=$(grep -c 'getelementptr.*, i64 %' pool.ll) offsets=$(grep -c 'getelementptr.*, i64 [0-9]*$' pool.ll)
    [ "$computed" -le 12 ] && [ "$offsets" -ge 24 ] || { echo "$computed computed, $offsets offsets"; return 1; }
}
cat >once.jaxpr <<'X'
{ lambda ; x:f32[8] y:f32[8]. let z:f32[8] = add x y in (z,) }
X
cat >one.jaxpr <<'X'
{ lambda ; x:f32[1024] y:f32[1024]. let z:f32[1024] = add x y in (z,) }
X
cat >pool.jaxpr <<'X'
{ lambda ; x:f32[64,64,32]. let
    y:f32[62,62,32] = reduce_window_sum[base_dilation=(1, 1, 1) padding=((0, 0), (0, 0), (0, 0))
      window_dilation=(1, 1, 1) window_dimensions=(3, 3, 1) window_strides=(1, 1, 1)] x
  in (y,) }
X
# The mask of a load is integers as wide as its lanes, or LLVM 22 may load what has none: outside the array, which --guard finds.
cat >back.jaxpr <<'X'
{ lambda ; a:f32[50]. let
    b:f32[64] = pad[padding_config=((3, 11, 0),)] a 0.0:f32[]
    c:f32[8,8] = reshape[dimensions=None new_sizes=(8, 8) sharding=None] b
    d:f32[8,8] = rev[dimensions=(1,)] c
    e:f32[8,16] = pad[padding_config=((0, 0, 0), (8, 0, 0))] d 1.0:f32[]
  in (e,) }
X
masked() {
    jaxcc back.jaxpr -march=x86-64-v3 --emit=llvm -o back.ll && grep -q 'shufflevector <16 x i32>' back.ll &&
        grep -q 'icmp slt <16 x i32>' back.ll && grep -q '@llvm.masked.load.v16f32' back.ll
}
inside() {
    grep -q avx2 /proc/cpuinfo || return 0
    case=$root/tests/cases/windows-sum-long
    jaxcc $case.jaxpr -march=x86-64-v3 -o windows.so && jaxcc-run --guard --expect $case.out.npz windows.so $case.in.npz
}
# Few literals stay in registers; the many of a long body are loaded in the loop.
cat >short.jaxpr <<'X'
{ lambda ; x:f32[1024]. let y:f32[1024] = mul x 1.5:f32[]; z:f32[1024] = add y 0.25:f32[] in (z,) }
X
cat >long.jaxpr <<'X'
{ lambda ; x:f32[1024]. let y:f32[1024] = erf x in (y,) }
X
loads() { jaxcc "$1.jaxpr" -march="$2" --emit=llvm -o "$1.ll" && grep -q 'load float, ptr @literal' "$1.ll"; }
stay() { ! loads "$@" && [ -s "$1.ll" ]; }
# Of large arrays that are read in order, more is asked for; not of short ones, nor where lanes are far apart.
cat >far.jaxpr <<'X'
{ lambda ; x:f32[512,4096]. let y:i32[512] = argmax[axes=(1,) index_dtype=int32] x in (y,) }
X
sed 's/512/16/g' far.jaxpr >near.jaxpr
cat >across.jaxpr <<'X'
{ lambda ; x:f32[4096,512]. let y:i32[512] = argmax[axes=(0,) index_dtype=int32] x in (y,) }
X
# asks NAME N: for so many lines of the cache in a body
asks() {
    jaxcc "$1.jaxpr" -march=x86-64-v3 --emit=llvm -o "$1.ll" || return
    lines=$(grep -c 'call void @llvm.prefetch' "$1.ll")
    [ "$lines" = "$2" ] || { echo "$1: $lines lines"; return 1; }
}
try "large arrays are asked for ahead" asks far 2
try "short arrays are not" asks near 0
try "arrays that are not read in order are not" asks across 0
try "few literals stay in registers" stay short x86-64-v3
try "many literals are loaded" loads long x86-64-v3
try "they stay where no instruction loads one into all lanes" stay long x86-64
try "masks of loads are integers" masked
try "masked loads are inside the array" inside
try "one iteration is no loop" emits once 0
try "several iterations are one loop" emits one 1
try "addresses differ in constants" addresses
finish
