#!/bin/sh
# loops.sh BUILD: the loops in emitted code: none for a single iteration, of which LLVM's strength reduction sees the index, masks of loads, and literals.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# emits NAME LOOPS HIDDEN: that many loops in the text of LLVM, and so many indices that are hidden.
emits() {
    jaxcc "$1.jaxpr" -march=x86-64-v3 --emit=llvm -o "$1.ll" || return
    loops=$(grep -c '= phi i64' "$1.ll") hidden=$(grep -c 'call i64 @llvm.expect.i64' "$1.ll")
    [ "$loops" = "$2" ] && [ "$hidden" = "$3" ] || { echo "$1: $loops loops, $hidden hidden"; return 1; }
}
cat >once.jaxpr <<'X'
{ lambda ; x:f32[8] y:f32[8]. let z:f32[8] = add x y in (z,) }
X
cat >one.jaxpr <<'X'
{ lambda ; x:f32[1024] y:f32[1024]. let z:f32[1024] = add x y in (z,) }
X
cat >rows.jaxpr <<'X'
{ lambda ; x:f32[24,200] y:f32[24]. let
    b:f32[24,200] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(24, 200) sharding=None] y
    z:f32[24,200] = add x b
  in (z,) }
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
try "few literals stay in registers" stay short x86-64-v3
try "many literals are loaded" loads long x86-64-v3
try "they stay where no instruction loads one into all lanes" stay long x86-64
try "masks of loads are integers" masked
try "masked loads are inside the array" inside
try "one iteration is no loop" emits once 0 0
try "the index of an innermost loop is seen" emits one 1 0
try "the index of a loop around another is hidden" emits rows 2 1
finish
