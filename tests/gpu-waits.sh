#!/bin/sh
# gpu-waits.sh BUILD: how often the host waits for the device in a call of a case, apart from what a call without control flow
# waits for, which is measured first.
. "$(dirname "$0")/try.sh"
# count CASE: calls it on the driver for tests; sets $n to the waits.
count_waits() {
    case=tests/cases/$1
    rm -f "$work/counts"
    jaxcc --target=nvptx64 "$case.jaxpr" -o "$work/case.so" >"$work/log" 2>&1 &&
        LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_COUNTS="$work/counts" \
            jaxcc-run "$work/case.so" "$case.in.npz" --expect "$case.out.npz" >"$work/said" 2>&1 &&
        n=$(tr ' ' '\n' <"$work/counts" | sed -n '/^waits$/{n;p;}')
}
# waits CASE N
waits() {
    count_waits "$1" && [ $((n - plain)) = "$2" ] && return
    echo "$1: $((n - plain)) waits, not $2" >>"$work/said"
    return 1
}
count_waits index-gather_batch && plain=$n || stop "a case without control flow"
# Turns of a while are enqueued 1, 2, 4, … at a time: the host waits once for each of these.
succeeds waits turns-none 1
succeeds waits turns-one 2
succeeds waits turns-many 4
succeeds waits turns-swap 5
succeeds waits turns-places 6 # 1 + 2 + 4 + 8 + 16 + 32 turns
succeeds waits turns-batched 5
succeeds waits turns-scans 2
succeeds waits turns-in-scan 16
succeeds waits turns-long 3 # cut into functions
# Kernels of all branches are enqueued, in loops too.
succeeds waits turns-branches 5
succeeds waits turns-loops 5
succeeds waits choice-two-0 0
succeeds waits choice-switch4 0
succeeds waits choice-nested 0
succeeds waits choice-in-scan 0
succeeds waits choice-loops 0
succeeds waits choice-over 0
succeeds waits reads-twice 7 # one for the predicate of two branches, the others in the loops
succeeds waits reads-branch 4 # one for the index of a branch in a branch
succeeds waits reads-long 10
finish
