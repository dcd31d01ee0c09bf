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
# graphs LAZY LAUNCHES FOLDER [VARIABLE=VALUE...]
graphs() {
    lazy=$1 want=$2 folder=$3
    shift 3
    rm -f "$work/counts" "$work/leaks"
    env LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_LAZY="$lazy" JAXCC_GPU_RACES=3 JAXCC_GPU_COUNTS="$work/counts" "$@" \
        "$work/$folder/pointers" && grep -q " graphs $want " "$work/counts"
}
for lazy in 0 1 2; do
    try "graphs, lazy $lazy" graphs $lazy 3 graph
done
# The words that kernels are given are compared: a scalar of fewer bytes is behind a store of 0 to the whole word.
words() {
    jaxcc -w --target=nvptx64 --emit=mlir "tests/cases/$1.jaxpr" -o "$work/words.mlir" && awk '
        $1 == "llvm.store" && $(NF - 1) ~ /^(i8|i16|i32|f16|bf16|f32),$/ { n++; if (whole != $3) exit 1 }
        { whole = $1 == "llvm.store" && $(NF - 1) == "i64," ? $3 : "" }
        END { if (!n) exit 1 }' "$work/words.mlir"
}
for case in choice-loops collective-diverge attention_cached; do try "words of parameters, $case" words $case; done
# The same by a loop that ends when the device says so: a graph of the first call, a node of the others'. An older driver has none.
cat >"$work/graph/axpy.jaxpr" <<'X2'
{ lambda ; a:f32[] x:f32[1000] y:f32[1000]. let
    b:f32[1000] = mul a x
    _:f32[] c:f32[1000] = while[
      body_jaxpr={ lambda ; k:f32[] d:f32[1000]. let
          l:f32[] = add k 1.0:f32[]
          e:f32[1000] = rev[dimensions=(0,)] d
        in (l, e) }
      body_nconsts=0
      cond_jaxpr={ lambda ; m:f32[] f:f32[1000]. let n:bool[] = lt m 10.0:f32[] in (n,) }
      cond_nconsts=0
    ] 0.0:f32[] b
    g:f32[1000] = add c y
  in (g,) }
X2
succeeds jaxcc --target=nvptx64 --device-pointers "$work/graph/axpy.jaxpr" -o "$work/graph/axpy.so"
for lazy in 0 1 2; do
    try "loops, lazy $lazy" graphs $lazy 4 graph
    try "loops, an older driver, lazy $lazy" graphs $lazy 0 graph JAXCC_GPU_DRIVER=12020
done
# A product whose operands come as boxes among them: its kernel gets tensor maps of arrays of the workspace.
mkdir "$work/boxes" "$work/old"
cat >"$work/boxes/axpy.jaxpr" <<'X3'
let turn = { lambda ; a:f16[1000] b:f16[64]. let
    c:f16[1000] = rev[dimensions=(0,)] a
    d:f16[64] = rev[dimensions=(0,)] b
  in (c, d) } in
{ lambda ; a:f32[] x:f32[1000] y:f32[1000]. let
    b:f16[1000] = convert_element_type[new_dtype=float16 weak_type=False] x
    c:i32[64] = iota[dimension=0 dtype=int32 shape=(64,) sharding=None]
    d:i32[64] = rem c 9:i32[]
    e:bool[64] = eq d 0:i32[]
    f:f16[64] = convert_element_type[new_dtype=float16 weak_type=False] e
    g:f16[1000] h:f16[64] = scan[jaxpr=turn length=10 linear=(False, False) num_carry=2 num_consts=0 reverse=False unroll=1] b f
    i:f16[125,8] = reshape[dimensions=None new_sizes=(125, 8) sharding=None] g
    j:f16[8,8] = reshape[dimensions=None new_sizes=(8, 8) sharding=None] h
    k:f32[125,8] = dot_general[dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32] i j
    l:f32[1000] = reshape[dimensions=None new_sizes=(1000,) sharding=None] k
    m:f32[1000] = mul a l
    n:f32[1000] = add m y
  in (n,) }
X3
set -- --target=nvptx64 -march=sm_90a "$work/boxes/axpy.jaxpr"
export JAXCC_GPU_SM=90
succeeds jaxcc "$@" --emit=ptx -o "$work/boxes/axpy.ptx"
succeeds grep -q cp.async.bulk.tensor.2d "$work/boxes/axpy.ptx"
succeeds jaxcc "$@" --device-pointers -o "$work/boxes/axpy.so"
succeeds cc $sanitize -Iruntime -I"$work/boxes" -I"$work" -I. tests/gpu_pointers.c "$work/boxes/axpy.so" "$work/several.so" \
    -Wl,-rpath,"$work/boxes:$work" -ldl -o "$work/boxes/pointers"
for lazy in 0 2; do
    try "graphs with boxes, lazy $lazy" graphs $lazy 3 boxes
done
# A row that several stages read is loaded once, 16 bytes at a time; the gradient of a loss that takes one element of each row is one kernel.
loaded_once() {
    ptx=$work/$1.ptx
    jaxcc --target=nvptx64 -march=sm_90 --emit=ptx "tests/cases/$1.jaxpr" -o "$ptx" && [ "$(grep -c '^\.visible \.entry' "$ptx")" = "$2" ] &&
        [ "$(grep -c 'ld\.global\.v4' "$ptx")" = "$3" ] && [ "$(grep -c 'ld\.global\.b' "$ptx")" = "$4" ]
}
try "a softmax of rows" loaded_once rows-held_once 1 2 0
try "the gradient of a loss" loaded_once scatter-one-each_gradient 1 2 1
# The same with host pointers and no inputs, where the driver does not make a map, or has no function for that.
sed 's/^{ lambda ; a.*/{ lambda ; . let x:f32[1000] = iota[dimension=0 dtype=float32 shape=(1000,) sharding=None]/; s/mul a/mul 2.0:f32[]/; s/m y$/m 1.0:f32[]/' \
    "$work/boxes/axpy.jaxpr" >"$work/boxes/none.jaxpr"
succeeds jaxcc --target=nvptx64 -march=sm_90a "$work/boxes/none.jaxpr" -o "$work/boxes/none.so"
sed 's/cuTensorMapEncodeTiled/cuTensorMapEncodeOther/g' "$build/tests/gpu/libcuda.so.1" >"$work/old/libcuda.so.1"
# fails TEXT DRIVER [FAILURE]
fails() {
    ! env LD_LIBRARY_PATH="$2" JAXCC_GPU_FAIL="$3" jaxcc-run "$work/boxes/none.so" >"$work/said" 2>&1 && grep -q "$1" "$work/said"
}
succeeds env LD_LIBRARY_PATH="$build/tests/gpu" jaxcc-run "$work/boxes/none.so"
succeeds fails 'CUDA_ERROR_INVALID_VALUE in cuTensorMapEncodeTiled' "$build/tests/gpu" cuTensorMapEncodeTiled:2:1
succeeds fails 'libcuda.so.1 has no cuTensorMapEncodeTiled' "$work/old"
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
cat >"$work/updates.jaxpr" <<'EOF'
{ lambda ; a:f32[9] b:i32[]. let
    c:i32[4294967296,1] = broadcast_in_dim[broadcast_dimensions=() shape=(4294967296,1)] b
    d:f32[4294967296] = broadcast_in_dim[broadcast_dimensions=() shape=(4294967296,)] 2.0:f32[]
    e:f32[9] = scatter-add[
      dimension_numbers=ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), scatter_indices_batching_dims=())
      indices_are_sorted=False mode=GatherScatterMode.FILL_OR_DROP unique_indices=False update_consts=() update_jaxpr=None
    ] a c d
  in (e,) }
EOF
try "too many updates" refused 1 'scatter-add: 4294967296 elements are too many to be sorted' --target=nvptx64 "$work/updates.jaxpr"
finish
