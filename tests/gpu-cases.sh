#!/bin/sh
# gpu-cases.sh BUILD PART SHARED: a part of tests/cases and one of ../shared/cases, compiled for a GPU and run by the interpreter of PTX, which looks
# for races, reads of memory never written and accesses out of bounds; each with blocks and warps in two orders, which give the same bytes. Of a part
# one half is compiled for sm_90, the other one for sm_80; all (1) for both. All programs for several devices in tests/cases run on three GPUs, whose
# streams take turns, and on sixteen with NCCL, and products by warpgroups on one.
cd "$(dirname "$0")/.." || exit 1
build=$1 part=$2 part_shared=$3 shared=
for folder in jax wild seeds facts jax-tx tx2; do
    [ ! -d "../shared/cases/$folder" ] || shared="$shared ../shared/cases/$folder"
done
export LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_RACES=3 JAXCC_GPU_UNINITIALISED=1 JAXCC_GPU_SM=90
gpu_cases() { "$build/tests/runner" --extra --target=nvptx64 "$@"; }
failed=0
in_orders() { # PART OPTION...
    some=$1
    shift
    half=$(awk -v some="$some" 'BEGIN { print some == 1 ? 1 : some / 2 }')
    gpu_cases --orders --part "$half" --extra -march=sm_90 "$@" || failed=1
    [ "$half" = 1 ] || half=$half,$some
    gpu_cases --orders --part "$half" --extra -march=sm_80 "$@" || failed=1
}
in_orders "$part" --strict --without '/sums-long' tests/cases # 16 million elements are too many for an interpreter
[ -z "$shared" ] || in_orders "$part_shared" --min-pass 0.995 $shared
gpu_cases --orders --filter '/(dot-(tiles|boxes)|attention_b?f16)' --strict --extra -march=sm_90a tests/cases || failed=1
several=$(grep -lE 'pmap|shard_map' tests/cases/*.jaxpr | sed 's|.*/||; s/[.]jaxpr$//' | paste -sd'|')
JAXCC_GPU_DEVICES=3 JAXCC_GPU_LAZY=2 gpu_cases --filter "/($several)[.]jaxpr" --strict tests/cases || failed=1
# By NCCL.
LD_LIBRARY_PATH=$build/tests/gpu/nccl:$LD_LIBRARY_PATH JAXCC_GPU_DEVICES=16 JAXCC_GPU_LAZY=1 gpu_cases --filter "/($several)[.]jaxpr" --strict tests/cases || failed=1
exit $failed
