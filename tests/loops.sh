#!/bin/sh
# loops.sh BUILD: the loops in emitted code: none for a single iteration, and of which LLVM's strength reduction sees the index.
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
try "one iteration is no loop" emits once 0 0
try "the index of an innermost loop is seen" emits one 1 0
try "the index of a loop around another is hidden" emits rows 2 1
finish
