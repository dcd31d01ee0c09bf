#!/bin/sh
# gpu-pointers.sh BUILD MODE: --device-pointers: calls with arrays of the GPU, on the driver for tests, with work done at once and when it is waited for;
# what the option does not go with.
. "$(dirname "$0")/try.sh"
cat >"$work/axpy.jaxpr" <<'X1'
{ lambda ; a:f32[] x:f32[1000] y:f32[1000]. let
    b:f32[1000] = mul a x
    c:f32[1000] = add b y
  in (c,) }
X1
cat >"$work/several.jaxpr" <<'X1'
{ lambda ; x:f32[4,250]. let
    y:f32[4,250] = xla_pmap[
      axis_name=i
      axis_size=4
      call_jaxpr={ lambda ; a:f32[250]. let
          b:f32[250] = psum[axes=('i',) axis_index_groups=None] a
          c:f32[250] = sub b a
        in (c,) }
      in_axes=(0,)
      out_axes=(0,)
    ] x
  in (y,) }
X1
echo '{ lambda ; n:i64[] x:f32[n]. let y:f32[n] = neg x in (y,) }' >"$work/extent.jaxpr"
for name in axpy several; do
    try "$name" jaxcc --target=nvptx64 --device-pointers "$work/$name.jaxpr" -o "$work/$name.so"
done
[ "$mode" = asan ] && sanitize=-fsanitize=address,undefined || sanitize= # as the driver for tests is
succeeds cc $sanitize -Iruntime -I"$work" -I. tests/gpu_pointers.c "$work/axpy.so" "$work/several.so" -Wl,-rpath,"$work" -ldl -o "$work/pointers"
for lazy in 0 1 2; do
    for n in 1 3; do
        try "lazy $lazy, GPUs: $n" env LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_LAZY=$lazy JAXCC_GPU_DEVICES=$n JAXCC_GPU_RACES=3 \
            "$work/pointers"
    done
done
# The same by many kernels, which the second call records as a graph: three of the four calls launch it.
mkdir "$work/graph"
cat >"$work/graph/axpy.jaxpr" <<'X2'
let turn = { lambda ; a:f32[1000]. let b:f32[1000] = rev[dimensions=(0,)] a in (b,) } in
{ lambda ; a:f32[] x:f32[1000] y:f32[1000]. let
    b:f32[1000] = mul a x
    c:f32[1000] = scan[jaxpr=turn length=10 linear=(False,) num_carry=1 num_consts=0 reverse=False unroll=1] b
    d:f32[1000] = add c y
  in (d,) }
X2
succeeds jaxcc --target=nvptx64 --device-pointers "$work/graph/axpy.jaxpr" -o "$work/graph/axpy.so"
succeeds cc $sanitize -Iruntime -I"$work/graph" -I"$work" -I. tests/gpu_pointers.c "$work/graph/axpy.so" "$work/several.so" \
    -Wl,-rpath,"$work/graph:$work" -ldl -o "$work/graph/pointers"
graphs() {
    rm -f "$work/counts" "$work/leaks"
    env LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_LAZY="$1" JAXCC_GPU_RACES=3 JAXCC_GPU_COUNTS="$work/counts" "$work/graph/pointers" &&
        grep -q ' graphs 3 ' "$work/counts"
}
for lazy in 0 1 2; do
    try "graphs, lazy $lazy" graphs $lazy
done
# refused STATUS TEXT OPTION...
refused() {
    want=$1 text=$2
    shift 2
    jaxcc "$@" -o "$work/no.so" >"$work/said" 2>&1
    [ $? = "$want" ] && grep -q "$text" "$work/said"
}
try "an extent" refused 1 "input 'n' is the extent of an array" --target=nvptx64 --device-pointers "$work/extent.jaxpr"
try "for CPUs" refused 2 'goes with --target=nvptx64' --device-pointers "$work/axpy.jaxpr"
try "an unknown GPU" refused 1 "did you mean 'sm_90'" --target=nvptx64 -march=sm_9O "$work/axpy.jaxpr"
try "--emit=ptx for CPUs" refused 1 'is for --target=nvptx64' --emit=ptx "$work/axpy.jaxpr"
finish
