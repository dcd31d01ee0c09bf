#!/bin/sh
# libraries.sh BUILD MODE: what holds of every library, on the examples and a product: the same bits for every number of threads, alone or two
# calls at once; needs libc and libm alone, is small, exports nothing else; valgrind is silent; nothing is left behind after a failure.
. "$(dirname "$0")/try.sh"
compile() {
    name=$1
    shift
    consts=
    [ -f "examples/$name.consts.npz" ] && consts=--consts=examples/$name.consts.npz
    jaxcc "examples/$name.jaxpr" $consts "$@" -o "$work/$name.so"
}
same_bits() {
    name=$1
    shift
    for n in 1 2 4; do
        jaxcc-run --threads $n "$work/$name.so" "$@" -o "$work/$name.$n.npz" || return 1
    done
    cmp "$work/$name.1.npz" "$work/$name.2.npz" && cmp "$work/$name.1.npz" "$work/$name.4.npz"
}
# Rows that are done in parts: numbers of all sizes, which their negatives make up for in the end, so that each bit of sums tells; and zeros of
# both signs.
prefixes() {
    half='f32[100001]' row='f32[200002]'
    cat >"$work/prefixes.jaxpr" <<EOF
{ lambda ; . let
    a:$half = iota[dimension=0 dtype=float32 shape=(100001,) sharding=None]
    b:$half = mul a 0.37:f32[]
    c:$half = sin b
    d:$half = mul a 1.7:f32[]
    e:$half = cos d
    f:$half = mul e 80.0:f32[]
    g:$half = exp f
    h:$half = mul c g
    i:$half = neg h
    j:$half = rev[dimensions=(0,)] i
    k:$row = concatenate[dimension=0] h j
    l:f64[200002] = convert_element_type[new_dtype=float64 weak_type=False] k
    m:f64[200002] = mul l l
    n:f64[200002] = mul m l
    o:$row = sign k
    p:$row = mul o 0.0:f32[]
    q:$row = cumsum[axis=0 reverse=False] k
    r:$row = cumsum[axis=0 reverse=True] k
    s:f64[200002] = cumsum[axis=0 reverse=False] n
    t:$row = cummax[axis=0 reverse=True] q
    u:$row = cummax[axis=0 reverse=False] p
    v:$row = cummin[axis=0 reverse=True] p
    w:$row = cumsum[axis=0 reverse=False] p
  in (q, r, s, t, u, v, w) }
EOF
    jaxcc "$work/prefixes.jaxpr" -o "$work/prefixes.so" && same_bits prefixes
}
# Factors and a solve of so many rows that threads share them.
factors() {
    matrix='[1250,1250]' columns='f32[1250,77]'
    cat >"$work/factors.jaxpr" <<EOF
{ lambda ; . let
    a:i32$matrix = iota[dimension=0 dtype=int32 shape=(1250, 1250) sharding=None]
    b:i32$matrix = iota[dimension=1 dtype=int32 shape=(1250, 1250) sharding=None]
    c:i32$matrix = sub a b
    d:f32$matrix = convert_element_type[new_dtype=float32 weak_type=False] c
    e:f32$matrix = abs d
    f:f32$matrix = mul e -0.05:f32[]
    g:f32$matrix = exp f
    h:bool$matrix = eq a b
    i:f32$matrix = convert_element_type[new_dtype=float32 weak_type=False] h
    j:f32$matrix = add g i
    k:f32$matrix = cholesky j
    l:$columns = iota[dimension=0 dtype=float32 shape=(1250, 77) sharding=None]
    m:$columns = sin l
    n:$columns = triangular_solve[conjugate_a=False left_side=True lower=True transpose_a=False unit_diagonal=False] k m
    o:f32$matrix p:i32[1250] q:i32[1250] = lu j
  in (k, n, o, p, q) }
EOF
    jaxcc "$work/factors.jaxpr" -o "$work/factors.so" && same_bits factors
}
needs_little() {
    readelf -d "$work/$1.so" | grep NEEDED | grep -v -e 'libc\.so\.6' -e 'libm\.so\.6' && return 1
    [ "$(stat -c %s "$work/$1.so")" -lt 65536 ]
}
# Linked with stubs, it needs the same functions of the same versions as with the system's libraries.
stubs() {
    mkdir -p "$work/bare/bin" && cp "$build/bin/jaxcc" "$work/bare/bin" && cp "$build/libjaxcc_rt.a" "$work/bare" || return 1
    "$work/bare/bin/jaxcc" -v examples/recurrence.jaxpr -o "$work/bare.so" >"$work/command" 2>&1 && grep -e ' -lm -lc$' "$work/command" || return 1
    jaxcc -v examples/recurrence.jaxpr -o "$work/stubs.so" >"$work/command" 2>&1 && grep 'libc\.stub\.so$' "$work/command" || return 1
    for so in bare stubs; do objdump -T "$work/$so.so" | grep UND | sort >"$work/$so.needs" && readelf -d "$work/$so.so" | grep NEEDED >>"$work/$so.needs"; done
    grep GLIBC_ "$work/bare.needs" && cmp "$work/bare.needs" "$work/stubs.needs"
}
exports() {
    nm -D --defined-only "$work/$1.so" | awk '{ print $3 }' | grep -v -x -e "$1" -e "$1_error" -e "$1_program" && return 1
    return 0
}
quiet() {
    valgrind -q --error-exitcode=9 jaxcc-run "$work/$1.so" "$2.in.npz" -o "$work/valgrind.npz"
}
reads_past() {
    past=tests/cases/dot-columns_past_sin
    jaxcc -march=x86-64-v3 $past.jaxpr -o "$work/past.so" && quiet past $past
}
at_once() {
    cc -O1 -I"$work" tests/concurrent.c "$work/attention.so" -Wl,-rpath,"$work" -pthread -o "$work/concurrent" && JAXCC_NUM_THREADS=3 "$work/concurrent"
}
leaves_nothing() {
    mkdir "$work/empty"
    echo '{ lambda ; a:f32[]. let b:f32[] = no_such_thing a in (b,) }' >"$work/wrong.jaxpr"
    ! TMPDIR="$work/empty" jaxcc "$work/wrong.jaxpr" -o "$work/empty/x.so" &&
        ! TMPDIR="$work/empty" PATH=/nonexistent "$build/bin/jaxcc" examples/recurrence.jaxpr -o "$work/empty/x.so" &&
        [ -z "$(ls -A "$work/empty")" ]
}
# LAPACK is loaded by who needs it, and missed in words.
lapack() {
    for n in 8 64; do
        cat >"$work/factor$n.jaxpr" <<END
{ lambda ; . let i:i32[$n,$n] = iota[dimension=0 dtype=int32 shape=($n, $n)]
    j:i32[$n,$n] = iota[dimension=1 dtype=int32 shape=($n, $n)]
    k:bool[$n,$n] = eq i j
    l:f64[$n,$n] = convert_element_type[new_dtype=float64 weak_type=False] k
    m:f64[$n,$n] = cholesky l
    o:c128[$n] = eig[compute_left_eigenvectors=False compute_right_eigenvectors=False] l
  in (m, o) }
END
        jaxcc "$work/factor$n.jaxpr" -o "$work/factor$n.so" || return 1
    done
    JAXCC_LAPACK=/nonexistent jaxcc-run "$work/factor8.so" || return 1
    jaxcc-run "$work/factor64.so" || return 1
    JAXCC_LAPACK=/nonexistent jaxcc-run "$work/factor64.so" >"$work/said" 2>&1 && return 1
    grep 'this program needs LAPACK, but JAXCC_LAPACK is no library: /nonexistent' "$work/said" || return 1
    JAXCC_LAPACK=libm.so.6 jaxcc-run "$work/factor64.so" >"$work/said" 2>&1 && return 1
    grep 'JAXCC_LAPACK is libm.so.6, which has no ' "$work/said" || return 1
    JAXCC_LAPACK= jaxcc-run "$work/factor64.so" # the same as unset
}
# What no 63 bits hold is the largest number.
workspace() {
    cat >"$work/cube.jaxpr" <<'END'
{ lambda ; a:f32[b]. let
    c:f32[b,b,b] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(b, b, b)] a
    d:f32[b,b,b] = sort[dimension=1 is_stable=True num_keys=1] c
    e:f32[b,b,b] = sort[dimension=0 is_stable=True num_keys=1] d
    f:f32[] = reduce_sum[axes=(0, 1, 2)] e
  in (f,) }
END
    jaxcc "$work/cube.jaxpr" -o "$work/cube.so" || return 1
    for b in 1300000 3000000 4294967296 4000000000000000000; do
        jaxcc-run --info -D b=$b "$work/cube.so" | grep 'workspace 9223372036854775807 bytes' || return 1
    done
    jaxcc-run --info -D b=1000 "$work/cube.so" | grep -v 9223372036854775807 | grep 'workspace [0-9]* bytes'
}
# An output of a computed size that no 63 bits hold: no memory, and the outputs made before it are given back.
computed_outputs() {
    awk 'BEGIN {
        print "{ lambda ; a:i64[]. let b:i64[] = mul a 2:i64[]; c:i64[] = mul a 4294967296:i64[]"
        for (i = 0; i < 100; i++) printf "    d%d:f32[b] = broadcast_in_dim[broadcast_dimensions=() shape=(None,)] %d.0:f32[] b\n", i, i
        print "    e:f32[c,c] = broadcast_in_dim[broadcast_dimensions=() shape=(None, None)] 1.0:f32[] c c"
        printf "  in (b, c"; for (i = 0; i < 100; i++) printf ", d%d", i; print ", e) }"
    }' >"$work/outputs.jaxpr"
    cat >"$work/outputs.c" <<'END'
#include "outputs.h"
#include <string.h>
int main(void) {
    int64_t a, b, c;
    jaxcc_array d[101] = {0};
    const void *in[] = {&a};
    void *out[103];
    for (int i = 0; i < 103; i++) out[i] = i == 0 ? &b : i == 1 ? &c : (void *)(d + i - 2);
    for (a = 3; a > -1; a -= 3) {
        memset(d, 0, sizeof d);
        if (outputs_program()->call(0, in, out) != (a ? JAXCC_MEMORY : JAXCC_OK)) return 2;
        for (int i = 0; i < 101; i++) {
            if (a ? d[i].data != 0 : !d[i].data) return 3;
            if (!a) d[i].release(d + i);
        }
    }
    return 0;
}
END
    jaxcc "$work/outputs.jaxpr" -o "$work/outputs.so" && cc "$work/outputs.c" "$work/outputs.so" -Wl,-rpath,"$work" -o "$work/outputs" && "$work/outputs"
}
# However many arguments there are, and values that are needed later: by NAME, and by `call`, which jaxcc-run makes with little
# stack.
many_arguments() {
    awk 'BEGIN {
        n = 1200
        printf "{ lambda ;"; for (i = 0; i < n; i++) printf " x%d:f32[]", i; print ". let"
        for (i = 0; i < n; i++) printf "    y%d:f32[] = add x%d %s\n", i, i, i ? "y" i - 1 : "0:f32[]"
        printf "  in (y%d, x7) }\n", n - 1
    }' >"$work/many.jaxpr"
    awk 'BEGIN {
        n = 1200
        print "#include \"many.h\"\nint main(void) {\n    static float x[" n "], y[2];"
        print "    for (int i = 0; i < " n "; i++) x[i] = i;\n    for (int k = 0; k < 3; k++) if (many("
        for (i = 0; i < n; i++) print "x + " i ","
        print "y, y + 1)) return 2;\n    const void *in[" n "]; void *out[2] = {y, y + 1};"
        print "    for (int i = 0; i < " n "; i++) in[i] = x + i;\n    float sum = y[0]; y[0] = 0;"
        print "    if (many_program()->call(0, in, out)) return 3;\n    return sum != 719400 || y[0] != sum || y[1] != 7;\n}"
    }' >"$work/many.c"
    jaxcc "$work/many.jaxpr" -o "$work/many.so" && cc -w "$work/many.c" "$work/many.so" -Wl,-rpath,"$work" -o "$work/many" && "$work/many"
}
many_values() {
    awk 'BEGIN {
        n = 4500
        print "{ lambda ; x0:f32[]. let"
        for (i = 1; i <= n; i++) printf "    x%d:f32[] = sin x%d\n", i, i - 1
        printf "    y%d:f32[] = mul x%d 2:f32[]\n", n, n
        for (i = n - 1; i >= 0; i--) printf "    y%d:f32[] = %s y%d x%d\n", i, i % 2 ? "mul" : "add", i + 1, i
        print "  in (y0,) }"
    }' >"$work/values.jaxpr"
    printf '{ lambda ; . let\n  in (0.5:f32[],) }\n' >"$work/half.jaxpr"
    jaxcc "$work/half.jaxpr" -o "$work/half.so" && jaxcc-run "$work/half.so" -o "$work/half.npy" || return 1
    jaxcc -O1 "$work/values.jaxpr" -o "$work/values.so" && jaxcc-run --guard "$work/values.so" "$work/half.npy"
}
[ "$mode" = asan ] || {
    try "many arguments" many_arguments
    try "many values" many_values
}
for name in classify train attention recurrence; do
    try "$name compiles" compile $name
    [ -f "$work/$name.so" ] || continue
    try "$name gives the same bits with 1, 2 and 4 threads" same_bits $name "examples/$name.in.npz"
    try "$name.so needs libc and libm alone" needs_little $name
    try "$name.so exports three names" exports $name
    [ "$mode" = asan ] || ! command -v valgrind >/dev/null || {
        compile $name -march=x86-64-v3 && try "valgrind on $name" quiet $name examples/$name
    }
done
try "prefixes have the same bits with 1, 2 and 4 threads" prefixes
try "factors and solves have the same bits with 1, 2 and 4 threads" factors
[ "$mode" = asan ] || ! command -v valgrind >/dev/null || try "valgrind on a product that reads past its columns" reads_past
compile attention && try "concurrent calls, and calls after fork" at_once
try "LAPACK is loaded where it is needed" lapack
try "the workspace of huge arrays" workspace
try "many outputs of computed sizes" computed_outputs
try "stubs of libc and libm" stubs
try "nothing is left behind" leaves_nothing
finish
