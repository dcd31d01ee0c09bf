#!/bin/sh
# gpu-runtime.sh BUILD MODE: runtime/cuda.c on the driver for tests (driver.h): results, with work done at once and only when it is waited for; each
# function of the driver fails at each of its first three uses; what is said when there is no driver, no GPU, one that is too old.
. "$(dirname "$0")/try.sh"
gpu=$build/tests/gpu
libraries=$gpu # where they are looked for
# scenario NAME [VARIABLE=VALUE...]: a child without leaks and misuses; what it says goes to said
scenario() {
    scenario=$1
    shift
    rm -f "$work/leaks" "$work/counts" "$work/nccl"
    env LD_LIBRARY_PATH="$libraries" JAXCC_GPU_LEAKS="$work/leaks" JAXCC_GPU_COUNTS="$work/counts" JAXCC_NCCL_LOG="$work/nccl" "$@" \
        timeout 120 "$build/tests/gpu_runtime" "$scenario" >"$work/said" 2>&1 || { echo "$scenario $*" && cat "$work/said" && return 1; }
    ! grep -s left "$work/nccl" >>"$work/leaks"
    ! [ -s "$work/leaks" ] || { echo "$scenario $*" && cat "$work/leaks" "$work/said" && return 1; }
}
value() { tr ' ' '\n' <"$work/counts" | sed -n "/^$1\$/{n;p;}"; }
# steady SCENARIO ITS: once all is loaded a call allocates nothing; with device pointers the test its arrays, and an output of a computed size: ITS.
steady() {
    of=$1 its=$2
    shift 2
    scenario "$of" MANY=2 "$@" && few=$(value allocations) || return 1
    scenario "$of" MANY=12 "$@" && [ "$(value allocations)" = $((few + 10 * its)) ]
}
# Calls that come again allocate nothing, and all but the first launch a graph.
steady_graph() {
    scenario graph_many MANY=2 "$@" && few=$(value allocations) && [ "$(value graphs)" = 1 ] || return 1
    scenario graph_many MANY=12 "$@" && [ "$(value allocations)" = "$few" ] && [ "$(value graphs)" = 11 ]
}
# What cannot be recorded is tried twice.
not_recorded() {
    scenario graph_many MANY=12 FAIL="$1:0" JAXCC_GPU_LAZY=1 && [ "$(value graphs)" = 0 ] && [ "$(value captures)" = "$2" ]
}
# So do calls with a loop, which is a graph in the first call, with few graphs made; with an older driver it is enqueued.
steady_loops() {
    scenario graph_many LOOPS=1 MANY=2 "$@" && few=$(value allocations) && [ "$(value graphs)" = 2 ] && waits=$(value waits) || return 1
    scenario graph_many LOOPS=1 MANY=12 "$@" && [ "$(value allocations)" = "$few" ] && [ "$(value graphs)" = 12 ] || return 1
    [ "$(value instantiated)" = 2 ] && [ "$(value waits)" = "$waits" ] || return 1
    scenario graph_many LOOPS=1 MANY=12 JAXCC_GPU_DRIVER=12020 "$@" && [ "$(value graphs)" = 0 ]
}
# Loops of calls with host pointers are made once.
one_loop() {
    scenario host_many MANY=2 "$@" && few=$(value instantiated) && [ "$(value graphs)" = 4 ] || return 1
    scenario host_many MANY=6 "$@" && [ "$(value instantiated)" = "$few" ] && [ "$(value graphs)" = 12 ]
}
# More loops than are kept: those that do not come again are made while there is room.
many_loops() { scenario many_loops "$@" && [ "$(value instantiated)" = 64 ]; }
# refused STATUS TEXT [VARIABLE=VALUE...]
refused() {
    want="$1 $2"
    shift 2
    scenario refused WANT="$want" "$@"
}
# Each function fails at its first, second, third use. Those that only give back may leave what they were to give back.
fails() {
    for n in 1 2 3; do
        scenario "$2" "$4=$1:$n" JAXCC_GPU_LAZY="$3" JAXCC_GPU_DEVICES="${5:-1}" && continue
        case $1 in
        cuMemFree* | cu*Destroy* | cuModuleUnload | *Release* | cuCtxPop* | cuEventRecord) grep -q '^leak\|not released\|not freed' "$work/leaks" && continue ;;
        esac
        return 1
    done
}
functions=$(sed -n 's/^CUDA[A-Z_]*(\([A-Za-z0-9_]*\),.*/\1/p' runtime/cuda_driver.def)

for lazy in 0 1 2; do
    try "results, lazy $lazy" scenario results JAXCC_GPU_LAZY=$lazy
    try "results, races, backwards, lazy $lazy" scenario results JAXCC_GPU_LAZY=$lazy JAXCC_GPU_RACES=3 JAXCC_GPU_ORDER=1
    try "large, lazy $lazy" scenario large JAXCC_GPU_LAZY=$lazy
    try "threads, lazy $lazy" scenario threads JAXCC_GPU_LAZY=$lazy
    try "streams, lazy $lazy" scenario streams JAXCC_GPU_LAZY=$lazy
    try "steady, lazy $lazy" steady many 2 JAXCC_GPU_LAZY=$lazy
    try "memory, lazy $lazy" scenario memory JAXCC_GPU_MEMORY=1000000 JAXCC_GPU_LAZY=$lazy
    try "arguments, lazy $lazy" scenario arguments JAXCC_GPU_LAZY=$lazy
    try "devices, lazy $lazy" scenario devices JAXCC_GPU_DEVICES=2 JAXCC_GPU_LAZY=$lazy
    try "ends, lazy $lazy" scenario ends JAXCC_GPU_LAZY=$lazy
    try "graphs, lazy $lazy" scenario graphs JAXCC_GPU_LAZY=$lazy
    try "graphs, steady, lazy $lazy" steady_graph JAXCC_GPU_LAZY=$lazy
    try "graphs, threads, lazy $lazy" scenario graph_threads JAXCC_GPU_LAZY=$lazy
    try "loops, lazy $lazy" scenario graphs LOOPS=1 JAXCC_GPU_LAZY=$lazy
    try "loops, steady, lazy $lazy" steady_loops JAXCC_GPU_LAZY=$lazy
    try "loops, made once, lazy $lazy" one_loop JAXCC_GPU_LAZY=$lazy
    try "loops, threads, lazy $lazy" scenario graph_threads LOOPS=1 JAXCC_GPU_LAZY=$lazy
    try "loops of an older driver, lazy $lazy" scenario results JAXCC_GPU_LAZY=$lazy JAXCC_GPU_DRIVER=12020
    try "many loops, lazy $lazy" many_loops JAXCC_GPU_LAZY=$lazy
    try "graphs, memory, lazy $lazy" scenario graph_memory JAXCC_GPU_MEMORY=1000000 JAXCC_GPU_LAZY=$lazy
    try "fault, lazy $lazy" scenario sticky FAULT=1 JAXCC_GPU_LAZY=$lazy
    try "fault of a call that does not wait, lazy $lazy" scenario sticky_device JAXCC_GPU_LAZY=$lazy
    try "fault of another call, lazy $lazy" scenario innocent JAXCC_GPU_LAZY=$lazy
    try "captured stream, lazy $lazy" scenario captured JAXCC_GPU_LAZY=$lazy
    try "beside captures, lazy $lazy" scenario beside_captures JAXCC_GPU_LAZY=$lazy
    try "released during captures, lazy $lazy" scenario released_at_last JAXCC_GPU_LAZY=$lazy
    for flags in 0 1; do try "the end during a capture, lazy $lazy" scenario end_beside_capture FLAGS=$flags JAXCC_GPU_LAZY=$lazy; done
    for n in 1 2 5; do
        try "several devices on $n, lazy $lazy" scenario spmd JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy JAXCC_GPU_RACES=3
        try "several devices on $n, threads, lazy $lazy" scenario threads_spmd JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
        try "several devices on $n, steady, lazy $lazy" steady many_spmd 1 JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
        try "one of several on $n stops, lazy $lazy" scenario spmd_stops JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
        try "a fault of one of several on $n, lazy $lazy" scenario spmd_fault JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
    done
    [ $lazy -lt 2 ] || continue
    for f in $functions; do
        try "$f fails, host pointers, lazy $lazy" fails "$f" once_host $lazy JAXCC_GPU_FAIL
        try "$f fails, device pointers, lazy $lazy" fails "$f" once_device $lazy FAIL
        try "$f fails, several devices, host pointers, lazy $lazy" fails "$f" once_spmd_host $lazy JAXCC_GPU_FAIL 2
        try "$f fails, several devices, device pointers, lazy $lazy" fails "$f" once_spmd_device $lazy FAIL 2
        try "$f fails, graphs, lazy $lazy" fails "$f" once_graph $lazy FAIL
        try "$f fails, graphs with loops, lazy $lazy" fails "$f" once_loop $lazy FAIL
    done
done
for f in cuStreamEndCapture cuGraphInstantiateWithFlags; do try "$f always fails" not_recorded $f 2; done
# graphs_of GRAPHS CAPTURES SCENARIO [VARIABLE=VALUE...]: so many are launched, after so many captures. failures FUNCTION ERROR: its first six uses fail.
graphs_of() {
    graphs=$1 captures=$2
    shift 2
    scenario "$@" && [ "$(value graphs)" = "$graphs" ] && [ "$(value captures)" = "$captures" ]
}
failures() { for i in 1 2 3 4 5 6; do printf '%s:1:%s,' "$1" "$2"; done; }
# Eight calls with a loop in a loop: what has no memory is tried once in each call, what else fails four times in all.
instantiate=cuGraphInstantiateWithFlags
try "no memory for loops" graphs_of 2 24 host_many MANY=4 JAXCC_GPU_FAIL="$(failures $instantiate 2)"
try "loops fail" graphs_of 0 9 host_many MANY=4 JAXCC_GPU_FAIL="$(failures $instantiate 999)"
try "no memory for the code of loops" graphs_of 7 6 host_many MANY=4 JAXCC_GPU_FAIL=cuModuleLoadDataEx:2:2
try "no memory for the kernel of loops" graphs_of 7 6 host_many MANY=4 JAXCC_GPU_FAIL=cuModuleGetFunction:7:2
try "no code of loops" graphs_of 0 0 host_many MANY=4 JAXCC_GPU_FAIL=cuModuleLoadDataEx:2:218
try "no memory for many loops, once a call" graphs_of 0 6 many_loops JAXCC_GPU_FAIL=$instantiate:0:2
try "no memory for graphs with loops" graphs_of 8 16 graph_many LOOPS=1 MANY=12 FAIL="$(failures $instantiate 2)"
try "streams do not begin captures" not_recorded cuStreamBeginCapture_v2 0
try "a handle of a stream is used again" scenario graph_reused JAXCC_GPU_REUSE=1 JAXCC_GPU_LAZY=1
# The same for programs for several devices with NCCL, on 8 GPUs: what it moves is right, each of its functions may fail, and each of the driver's.
# Without it, if it does not start or is not wanted, GPUs copy.
libraries=$gpu/nccl:$gpu
with_nccl() { scenario "$@" && grep -q ncclAllGather "$work/nccl"; }
# without_nccl CALLS VARIABLE=VALUE...: after so many calls of it
without_nccl() {
    calls=$1
    shift
    scenario spmd JAXCC_GPU_DEVICES=8 "$@" && [ "$(cat "$work/nccl" 2>/dev/null | grep -c .)" = "$calls" ]
}
nccl_fails() { fails "$1" "$2" 1 JAXCC_NCCL_FAIL 8 && { [ "$3" = silent ] || grep "7 $1 failed: unhandled system error" "$work/said"; }; }
for lazy in 0 1 2; do
    for n in 4 8; do
        try "NCCL on $n, lazy $lazy" with_nccl spmd JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy JAXCC_GPU_RACES=3
        try "NCCL on $n, threads, lazy $lazy" with_nccl threads_spmd JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
        try "NCCL on $n, steady, lazy $lazy" steady many_spmd 1 JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
        try "NCCL on $n, one stops, lazy $lazy" with_nccl spmd_stops JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
        try "NCCL on $n, a fault, lazy $lazy" scenario spmd_fault JAXCC_GPU_DEVICES=$n JAXCC_GPU_LAZY=$lazy
    done
done
for f in ncclGroupStart ncclGroupEnd ncclAllGather ncclSend ncclRecv; do
    try "$f fails, host pointers" nccl_fails "$f" once_spmd_host said
    try "$f fails, device pointers" nccl_fails "$f" once_spmd_device said
done
try "ncclCommDestroy fails" nccl_fails ncclCommDestroy once_spmd_host silent
for f in $functions; do
    try "$f fails, NCCL, host pointers" fails "$f" once_spmd_host 1 JAXCC_GPU_FAIL 8
    try "$f fails, NCCL, device pointers" fails "$f" once_spmd_device 1 FAIL 8
done
# NCCL does not start: that call does without, the next one does not.
starts() {
    scenario spmd JAXCC_GPU_DEVICES=8 JAXCC_NCCL_FAIL="ncclCommInitAll:$1" && [ "$(grep -c ncclCommInitAll "$work/nccl")" = "$2" ] &&
        [ "$(grep -c ncclAllGather "$work/nccl")" = "$3" ]
}
try "NCCL does not start, once" starts 1 3 60
try "NCCL does not start, the second time" starts 2 3 64
try "NCCL does not start: the first, second and fourth call try" starts 0 3 0
try "NCCL is not what we need" without_nccl 1 JAXCC_NCCL_FAIL=ncclCommInitAll:1:5
try "an exchange that ends those of another call" scenario nccl_aborted JAXCC_GPU_DEVICES=8 JAXCC_NCCL_FAIL=ncclGroupStart:2
# Kernels of the exchange of that number do not end.
lost() { scenario nccl_lost JAXCC_NCCL_LOST="$1:6" CALL=$((($1 + 3) / 4)) JAXCC_GPU_DEVICES=8 "$2" ${3+"$3"} && grep -q ncclCommAbort "$work/nccl"; }
for lazy in 0 1 2; do
    for n in 1 2 3 4 5 8; do try "NCCL fails in exchange $n, lazy $lazy" lost $n JAXCC_GPU_LAZY=$lazy; done
    try "NCCL fails before a device reads, lazy $lazy" lost 1 JAXCC_GPU_LAZY=$lazy IN=read
    try "NCCL fails while devices meet, lazy $lazy" lost 1 JAXCC_GPU_LAZY=$lazy IN=meet
    try "NCCL fails and a device stops, lazy $lazy" lost 1 JAXCC_GPU_LAZY=$lazy IN=stop
done
lost_between() {
    with_nccl nccl_lost_between JAXCC_NCCL_LOST=0:6 JAXCC_GPU_DEVICES=8 && [ "$(grep -c ncclCommInitAll "$work/nccl")" = 4 ] && ! grep ncclCommDestroy "$work/nccl"
}
try "NCCL fails between calls" lost_between
old_nccl() {
    mkdir -p "$work/old_nccl" && sed 's/ncclCommGetAsyncError/ncclCommGetOtherError/g' "$gpu/nccl/libnccl.so.2" >"$work/old_nccl/libnccl.so.2" &&
        libraries=$work/old_nccl:$gpu && with_nccl spmd JAXCC_GPU_DEVICES=8 JAXCC_GPU_LAZY=1
}
try "an NCCL that tells of no failures" old_nccl
# More groups of GPUs than communicators are kept for: the oldest ones end.
many_groups() { scenario meshes JAXCC_GPU_DEVICES=8 JAXCC_GPU_LAZY=1 && [ "$(grep -c ncclAllGather "$work/nccl")" = 1600 ]; }
try "many groups" many_groups
try "a GPU is lost while its thread waits, NCCL" scenario lost_while_waiting JAXCC_GPU_DEVICES=4 JAXCC_GPU_LAZY=1
try "NCCL is not wanted" without_nccl 0 JAXCC_NCCL=none
try "several devices on each GPU" without_nccl 0 JAXCC_GPU_DEVICES=3
libraries=$gpu
try "a GPU is lost while its thread waits" scenario lost_while_waiting JAXCC_GPU_DEVICES=4 JAXCC_GPU_LAZY=1
try "another NCCL" with_nccl spmd JAXCC_GPU_DEVICES=8 JAXCC_NCCL="$gpu/nccl/libnccl.so.2"

# Some functions that fail in twelve calls, drawn with a seed; of what a caller's release() uses none, as it cannot say so.
drawn() {
    echo "$functions" | grep -v -e Destroy -e Free -e Release -e Unload -e Ctx -e Init -e Pointer | awk -v seed="$1" '
        { name[NR] = $1 }
        END { srand(seed); for (i = 0; i < 4; i++) printf "%s%s:%d", i ? "," : "", name[1 + int(NR * rand())], 1 + 12 * rand() }'
}
seed=1
while [ $seed -le 30 ]; do
    try "several, seed $seed" scenario several FAIL="$(drawn $seed)" JAXCC_GPU_LAZY=$((seed % 3))
    try "several, several devices, seed $seed" scenario several_spmd FAIL="$(drawn $seed)" JAXCC_GPU_LAZY=$((seed % 3)) \
        JAXCC_GPU_DEVICES=$((1 + seed % 4))
    seed=$((seed + 1))
done
for f in cuLaunchKernel cuStreamSynchronize cuMemcpyHtoDAsync_v2 cuEventSynchronize; do
    for r in 700 716 719; do try "$f answers $r" scenario sticky JAXCC_GPU_FAIL=$f:2:$r; done
done
succeeds scenario sticky FAULT=1 CUDA_LAUNCH_BLOCKING=1
succeeds scenario images
succeeds scenario image_of_90 JAXCC_GPU_SM=90
succeeds scenario image_of_90 JAXCC_GPU_SM=120
# Products whose operands stream have room in the shared memory of any GPU, whichever they are compiled for.
echo '{ lambda ; . let
    a:bf16[32,40] = iota[dimension=1 dtype=bfloat16 shape=(32, 40) sharding=None]
    b:bf16[40,32768] = iota[dimension=0 dtype=bfloat16 shape=(40, 32768) sharding=None]
    c:bf16[32,40] = cumsum[axis=0 reverse=False] a
    d:bf16[40,32768] = cumsum[axis=0 reverse=False] b
    e:f32[32,32768] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] c d
    f:f32[] = reduce_max[axes=(0, 1) out_sharding=None] e
  in (f,) }' >"$work/streamed.jaxpr"
streamed() {
    jaxcc --target=nvptx64 -march="$1" "$work/streamed.jaxpr" -o "$work/streamed.so" &&
        LD_LIBRARY_PATH="$gpu" JAXCC_GPU_SM="$2" jaxcc-run "$work/streamed.so" >"$work/said" 2>&1
}
try "a streamed product on sm_86" streamed sm_80 86
try "a streamed product on sm_120" streamed sm_90 120
succeeds scenario after_fork
succeeds scenario second_device JAXCC_GPU_DEVICES=2 JAXCC_CUDA_DEVICE=1 JAXCC_GPU_SM=70,80
mkdir "$work/empty"
try "no driver" refused 6 "needs an NVIDIA GPU and its driver: libcuda.so.1" LD_LIBRARY_PATH="$work/empty"
try "no device" refused 6 "needs an NVIDIA GPU, but there is no NVIDIA GPU (CUDA_ERROR_NO_DEVICE)" JAXCC_GPU_DEVICES=0
try "no device of that number" refused 6 "there is no GPU 1: there is 1, the first is 0" JAXCC_CUDA_DEVICE=1
try "no number" refused 6 "JAXCC_CUDA_DEVICE is 'x', not the number of a GPU" JAXCC_CUDA_DEVICE=x
try "too old" refused 4 "was compiled for sm_80 and later, but GPU 0 (interpreter of sm_75) is sm_75" JAXCC_GPU_SM=75
try "old driver" refused 6 "GPU 0: a newer driver is needed, CUDA_ERROR_UNSUPPORTED_PTX_VERSION" \
    JAXCC_GPU_FAIL=cuModuleLoadDataEx:1:222,cuDriverGetVersion:1
try "mismatch" refused 6 "libcuda.so.1 does not fit the kernel's driver" JAXCC_GPU_FAIL=cuInit:1:803
# A driver without one of the functions.
missing() {
    echo 'int cuInit(unsigned x) { return 0; }' >"$work/old.c"
    mkdir -p "$work/old" && cc -shared -fPIC "$work/old.c" -o "$work/old/libcuda.so.1" &&
        refused 6 "driver is too old: libcuda.so.1 has no cuGetErrorName" LD_LIBRARY_PATH="$work/old"
}
succeeds missing
# One without a function that only graphs need, or only loops in them: there it has another name.
without_graphs() {
    mkdir -p "$work/$1" && sed "s/$1/$(echo "$1" | tr a-z b-za)/g" "$gpu/libcuda.so.1" >"$work/$1/libcuda.so.1" && libraries=$work/$1 || return 1
    scenario results && scenario graph_many MANY=4 && [ "$(value graphs)" = "$2" ] && scenario graph_many LOOPS=1 MANY=4 && [ "$(value graphs)" = 0 ]
}
for f in cuStreamBeginCapture_v2 cuGraphInstantiateWithFlags cuGraphExecDestroy; do try "a driver without $f" without_graphs $f 0; done
try "a driver without conditions" without_graphs cuGraphConditionalHandleCreate 3
# A library that is linked as the compiler does it: what it needs and exports, and that nothing is left when it is unloaded.
unloads() {
    case $mode in asan) flags=-fsanitize=address,undefined ;; *) flags= ;; esac
    cc -O1 -w -fPIC -fvisibility=hidden -DLIBRARY -c tests/gpu_unload.c -o "$work/library.o" &&
        ld -shared -z defs -z now --gc-sections --exclude-libs ALL --as-needed -o "$work/library.so" "$work/library.o" \
            "$build/libjaxcc_rt.a" -L"$(dirname "$(cc -print-file-name=libc.so)")" -lm -lc &&
        cc -O1 $flags tests/gpu_unload.c -o "$work/host" || return 1
    readelf -d "$work/library.so" | grep NEEDED | grep -v -e 'libc\.so\.6' -e 'libm\.so\.6' && return 1
    [ "$(nm -D --defined-only "$work/library.so" | awk '{ print $3 }')" = call ] || return 1
    env LD_LIBRARY_PATH="$gpu" JAXCC_GPU_LEAKS="$work/leaks" JAXCC_GPU_LAZY=1 "$work/host" "$work/library.so" && ! [ -s "$work/leaks" ]
}
succeeds unloads
# The driver for tests has all that the runtime calls.
complete() {
    nm -D --defined-only "$gpu/libcuda.so.1" | awk '{ print $3 }' >"$work/has"
    for f in $functions; do grep -qx "$f" "$work/has" || { echo "no $f" && return 1; }; done
}
succeeds complete
finish
