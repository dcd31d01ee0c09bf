#!/bin/sh
# gpu-waits.sh BUILD: how often the host waits for the device in a call of a case, apart from what a call without control flow
# waits for, which is measured first.
. "$(dirname "$0")/try.sh"
# count CASE DRIVER: calls it on the driver for tests, of that version; sets $n to the waits.
count_waits() {
    case=tests/cases/$1
    rm -f "$work/counts"
    jaxcc --target=nvptx64 "$case.jaxpr" -o "$work/case.so" >"$work/log" 2>&1 &&
        LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_DRIVER="$2" JAXCC_GPU_COUNTS="$work/counts" \
            jaxcc-run "$work/case.so" "$case.in.npz" --expect "$case.out.npz" >"$work/said" 2>&1 &&
        n=$(tr ' ' '\n' <"$work/counts" | sed -n '/^waits$/{n;p;}')
}
# waits CASE NEW OLD: with a driver that has conditions in graphs, and one that has not
waits() {
    for version in $new $old; do
        [ $version = $new ] && want=$2 || want=$3
        count_waits "$1" $version && [ $((n - plain)) = "$want" ] && continue
        echo "$1, CUDA $version: $((n - plain)) waits, not $want" >>"$work/said"
        return 1
    done
}
new=12040 old=12020
count_waits index-gather_batch $new && plain=$n || stop "a case without control flow"
# A while is a graph; else its turns are enqueued 1, 2, 4, … at a time, and the host waits once for each of these.
succeeds waits turns-none 0 1
succeeds waits turns-one 0 1
succeeds waits turns-many 0 4
succeeds waits turns-swap 0 5
succeeds waits turns-places 0 6 # 1 + 2 + 4 + 8 + 16 + 32 turns
succeeds waits turns-batched 0 5
succeeds waits turns-scans 0 2
succeeds waits turns-in-scan 0 15
succeeds waits turns-long 0 2 # cut into functions
# Loops in loops are nodes in nodes; else the host waits in every turn of the outer one.
succeeds waits turns-nested 0 42
succeeds waits turns-newton 0 37
succeeds waits turns-deep 0 367
# Kernels of all branches are enqueued, in loops too.
succeeds waits turns-branches 0 5
succeeds waits turns-loops 0 5
succeeds waits choice-two-0 0 0
succeeds waits choice-switch4 0 0
succeeds waits choice-nested 0 0
succeeds waits choice-in-scan 0 0
succeeds waits choice-loops 0 0
succeeds waits choice-over 0 0
succeeds waits reads-twice 1 7 # one for the predicate of two branches, the others in the loops
succeeds waits reads-branch 1 4 # one for the index of a branch in a branch
succeeds waits reads-long 1 10
succeeds waits scan-length 1 1 # the length
finish
