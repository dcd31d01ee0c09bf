#!/bin/sh
# gpu-cases.sh BUILD PART [DIR...]: a part of tests/cases (all: 1), and of the cases of other folders, compiled for a GPU and run by the
# interpreter of PTX, which looks for races, reads of memory never written and accesses out of bounds; once more with blocks and warps in another
# order. All programs for several devices in tests/cases run on three GPUs, whose streams take turns, and on sixteen with NCCL, and products by
# warpgroups on one.
cd "$(dirname "$0")/.." || exit 1
build=$1 part=$2
shift 2
others="$*"
export LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_RACES=3 JAXCC_GPU_UNINITIALISED=1 JAXCC_GPU_SM=90
gpu_cases() { "$build/tests/runner" --extra --target=nvptx64 "$@"; }
failed=0
in_order() {
    export JAXCC_GPU_ORDER="$1"
    shift
    # 16 million elements are too many for an interpreter.
    gpu_cases "$@" --part "$part" --strict --without '/sums-long' tests/cases || failed=1
    [ -z "$others" ] || gpu_cases "$@" --part "$part" --min-pass 0.995 $others || failed=1
}
in_order 0 --extra -march=sm_90
in_order 1 --seed 1 --extra -march=sm_80
for order in 0 1; do
    JAXCC_GPU_ORDER=$order gpu_cases --filter '/(dot-(tiles|boxes)|attention_b?f16)' --strict --extra -march=sm_90a tests/cases || failed=1
done
unset JAXCC_GPU_ORDER
several=$(grep -lE 'pmap|shard_map' tests/cases/*.jaxpr | sed 's|.*/||; s/[.]jaxpr$//' | paste -sd'|')
JAXCC_GPU_DEVICES=3 JAXCC_GPU_LAZY=2 gpu_cases --filter "/($several)[.]jaxpr" --strict tests/cases || failed=1
# By NCCL.
LD_LIBRARY_PATH=$build/tests/gpu/nccl:$LD_LIBRARY_PATH JAXCC_GPU_DEVICES=16 JAXCC_GPU_LAZY=1 gpu_cases --filter "/($several)[.]jaxpr" --strict tests/cases || failed=1
exit $failed
