#!/bin/sh
# gpu-cases.sh BUILD PART DIR...: a part of the cases (all: 1) compiled for a GPU and run by the interpreter of PTX, which looks for races, reads of
# memory never written and accesses out of bounds; those of tests/cases once more with blocks and warps in another order, and all programs for
# several devices there on three GPUs, whose streams take turns, and on sixteen with NCCL, and products by warpgroups.
cd "$(dirname "$0")/.." || exit 1
build=$1 part=$2
shift 2
export LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_RACES=3 JAXCC_GPU_UNINITIALISED=1 JAXCC_GPU_SM=90
"$build/tests/runner" --part "$part" --strict --extra --target=nvptx64 --extra -march=sm_90 "$@" || exit
JAXCC_GPU_ORDER=1 "$build/tests/runner" --part "$part" --seed 1 --strict --extra --target=nvptx64 --extra -march=sm_80 "$@" || exit
for order in 0 1; do
    JAXCC_GPU_ORDER=$order "$build/tests/runner" --filter '/dot-(tiles|boxes)' --strict --extra --target=nvptx64 --extra -march=sm_90a tests/cases || exit
done
several=$(grep -lE 'pmap|shard_map' tests/cases/*.jaxpr | sed 's|.*/||; s/[.]jaxpr$//' | paste -sd'|')
JAXCC_GPU_DEVICES=3 JAXCC_GPU_LAZY=2 "$build/tests/runner" --filter "/($several)[.]jaxpr" --strict --extra --target=nvptx64 tests/cases || exit
# By NCCL.
LD_LIBRARY_PATH=$build/tests/gpu/nccl:$LD_LIBRARY_PATH JAXCC_GPU_DEVICES=16 JAXCC_GPU_LAZY=1 "$build/tests/runner" --filter "/($several)[.]jaxpr" --strict \
    --extra --target=nvptx64 tests/cases
