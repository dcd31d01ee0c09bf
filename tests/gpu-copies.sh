#!/bin/sh
# gpu-copies.sh BUILD: how many bytes each GPU gets from others in programs for several: parts of the operands and what devices exchange, and on the
# first GPU, where operands and results lie, parts of the results. NCCL, which moves them, changes no bit.
. "$(dirname "$0")/try.sh"
# received GPU
received() { tr ' ' '\n' <"$work/counts" | sed -n "/^received_$1\$/{n;p;}"; }
# copies CASE GPUS FIRST OTHERS: bytes that the first GPU and that each other one gets; the results are right.
copies() {
    case=tests/cases/$1
    rm -f "$work/counts"
    jaxcc --target=nvptx64 "$case.jaxpr" -o "$work/case.so" &&
        LD_LIBRARY_PATH="$build/tests/gpu" JAXCC_GPU_DEVICES="$2" JAXCC_GPU_COUNTS="$work/counts" \
            jaxcc-run "$work/case.so" "$case.in.npz" --expect "$case.out.npz" || return 1
    cat "$work/counts"
    [ "$(received 0)" = "$3" ] || return 1
    k=1
    while [ $k -lt "$2" ]; do
        [ "$(received $k)" = "$4" ] || return 1
        k=$((k + 1))
    done
}
# Parts of 24, 48, 5, 24 and 4 bytes, and numbers of three others; results of 101 bytes of each.
try "shards" copies collective-shards 8 $((3 * 4 + 7 * 101)) $((105 + 3 * 4))
# Of arrays of 262144 bytes and more three quarters twice, which may end with zeros; one of these is cut up once, then summed and its least elements
# taken. Of a small array three times all, and a number. Results of 610 bytes of each.
large=$((6 * 65540 + 2 * 6 * 70000 + 9 * 65536))
try "sums of large arrays" copies collective-parts 4 $((large + 3 * 4000 + 3 * 610)) $((large + 3 * 4000 + 4))
try "one GPU" copies collective-shards 1 0 0
# same CASE GPUS: with NCCL the results have the same bits.
same() {
    case=tests/cases/$1
    jaxcc --target=nvptx64 "$case.jaxpr" -o "$work/case.so" || return 1
    for by in none libnccl.so.2; do
        LD_LIBRARY_PATH="$build/tests/gpu/nccl:$build/tests/gpu" JAXCC_GPU_DEVICES="$2" JAXCC_NCCL=$by JAXCC_NCCL_LOG="$work/$by" \
            jaxcc-run "$work/case.so" "$case.in.npz" -o "$work/$by.npz" || return 1
    done
    grep -q ncclRecv "$work/libnccl.so.2" && ! [ -e "$work/none" ] && cmp "$work/none.npz" "$work/libnccl.so.2.npz"
}
try "sums by NCCL" same collective-parts 4
finish
