#!/bin/sh
# large.sh BUILD MODE [all]: constants that are large, in libraries, objects and archives, and the memory that compiling them takes beyond the page
# cache (ulimit -d). `all`: beyond 2 GiB, 8 GiB in all; that takes some minutes and 20 GB of disk in $TMPDIR.
. "$(dirname "$0")/try.sh"
all=$3
export TMPDIR="$work"
cd "$work" || exit 1
cc -D_GNU_SOURCE -O1 -w "$root/tests/large.c" "$root/runtime/npz.c" "$root/runtime/npz_write.c" "$root/runtime/float.c" -lz -lm -o large ||
    stop "large.c does not compile"
# m.jaxpr, m.npz: constants of N elements each; eight elements from i on, times 2, and the last eight are the results.
program() {
    ./large m.npz "$@" || return 1
    {
        printf '{ lambda'
        k=0
        for n; do printf ' c%d:f32[%d]' $k "$n" && k=$((k + 1)); done
        printf ' ; x:f32[] i:i64[]. let\n'
        k=0
        for n; do
            printf 'p%d:f32[8] = dynamic_slice[slice_sizes=(8,)] c%d i\n' $k $k
            printf 'q%d:f32[8] = mul p%d x\n' $k $k
            printf 'r%d:f32[8] = slice[limit_indices=(%d,) start_indices=(%d,) strides=None] c%d\n' $k "$n" $((n - 8)) $k
            printf 's%d:f32[8] = add q%d r%d\n' $k $k $k
            k=$((k + 1))
        done
        printf 'in ('
        k=0
        for n; do printf 's%d, ' $k && k=$((k + 1)); done
        printf ') }\n'
    } >m.jaxpr
    printf '#include "m.h"\n#include <stdio.h>\nint main(void) {\n    float x = 2, out[64][8];\n    int64_t i = 1LL << 40;\n' >main.c
    printf '    if (m(&x, &i' >>main.c
    k=0
    want=
    for n; do printf ', out[%d]' $k >>main.c && want="$want$((3 * k)) $((3 * k + 21)) " && k=$((k + 1)); done
    printf ')) return 1;\n    for (int k = 0; k < %d; k++) printf("%%g %%g ", out[k][0], out[k][7]);\n}\n' $k >>main.c
}
compile() {
    (
        [ "$mode" != release ] || ulimit -d "$1"
        shift
        exec jaxcc m.jaxpr --consts=m.npz "$@"
    )
}
# made KIND KIB N...: compiled in KIB of memory, linked to a program, called.
made() {
    kind=$1 kib=$2
    shift 2
    rm -f m.* main
    program "$@" && compile "$kib" -o "m.$kind" || return 1
    rm m.npz
    runtime=
    [ "$kind" != o ] || runtime=$build/libjaxcc_rt.a
    [ "$kind" != so ] || runtime=-Wl,-rpath,$work
    cc main.c "m.$kind" $runtime -pthread -o main && [ "$(./main)" = "$want" ]
}
# What is there is enough for the tools that install a library.
stripped() {
    made so 200000 300000 && strip m.so && [ "$(./main)" = "$want" ] && [ "$(readelf -lW m.so | grep -c 'LOAD.*RWE')" = 0 ]
}
# The whole block as text.
text() {
    rm -f m.*
    program 300000 20 && jaxcc m.jaxpr --consts=m.npz -o m.s && cc -c m.s -o m.o && jaxcc m.jaxpr --consts=m.npz --emit=header -o m.h &&
        cc main.c m.o "$build/libjaxcc_rt.a" -pthread -o main && [ "$(./main)" = "$want" ]
}
# Other linkers lay out libraries in other ways.
only() {
    mkdir -p tools && rm -f tools/* && ln -s "$(command -v "$1")" "tools/$1" && program 300000 20 400000 &&
        PATH=$work/tools "$build/bin/jaxcc" m.jaxpr --consts=m.npz -o m.so && cc main.c m.so -Wl,-rpath,"$work" -o main && [ "$(./main)" = "$want" ]
}
full() {
    rm -f m.*
    program 300000 && ( ulimit -f 1000 && ! jaxcc m.jaxpr --consts=m.npz -o m.so 2>said ) && grep 'File too large' said && [ ! -e m.so ] && [ ! -e m.h ]
}
# Many that are small each, but not together.
many() {
    set --
    for k in 1 2 3 4 5 6 7 8 9; do set -- "$@" 250000 262143 262144 8 24 40; done
    made so 400000 "$@"
}
# --debug-nans reads a constant once, however many equations take from it.
checked() {
    seconds=20
    [ "$mode" = release ] || seconds=300
    rm -f m.*
    ./large m.npz "$1" || return 1
    awk -v n="$1" -v slices="$2" 'BEGIN { print "{ lambda c:f32[" n "] ; a0:f32[1] i:i32[]. let"
        for (k = 0; k < slices; k++) print "b" k ":f32[1] = dynamic_slice[slice_sizes=(1,)] c i a" k + 1 ":f32[1] = add a" k " b" k
        print "in (a" slices ",) }" }' >m.jaxpr
    timeout $seconds jaxcc m.jaxpr --consts=m.npz --debug-nans -o m.so
}
G=268435456 # elements of 1 GiB
if [ "$all" = all ]; then
    for kind in so o a; do succeeds made $kind 400000 $G $G $G; done
    succeeds made so 400000 $((5 * G / 2))
    succeeds made so 400000 $((2 * G)) $((2 * G)) $((4 * G))
else
    succeeds made so 100000 $((G / 8))
    for kind in so o a; do succeeds made $kind 200000 300000 20 400000; done
    succeeds many
    succeeds stripped
    succeeds text
    succeeds full
    succeeds checked $((G / 16)) 2000
    ! command -v ld.lld >/dev/null || succeeds only ld.lld
fi
finish
