#!/bin/sh
# programs.sh BUILD: several programs in one library (programs.c): each has its own name, symbols, conditions on them, parameters and
# errors; what they have in common lies in it once.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# The same symbols: n = m must hold in `sum` alone, m <= n in `cut` alone; `all` has no condition, and a parameter called like `sum`.
cat >sum.jaxpr <<'X'
{ lambda ; x:f32[n] y:f32[m]. let z:f32[n] = add x y in (z,) }
X
cat >cut.jaxpr <<'X'
{ lambda ; x:f32[n] y:f32[m] i:i32[]. let z:f32[m] = dynamic_slice[slice_sizes=(m,)] x i; w:f32[m] = add y z in (w,) }
X
cat >all.jaxpr <<'X'
{ lambda ; sum:f32[m] y:f32[n]. let z:f32[m + n] = concatenate[dimension=0] sum y; w:f32[m + n] = exp z in (w,) }
X
# More arguments than registers: their functions find them in memory.
wide() {
    awk -v n="$1" -v by="$2" 'BEGIN {
        printf "{ lambda ; "
        for (i = 0; i < n; i++) printf "x%d:f32[k] ", i
        printf ". let "
        for (i = 1; i < n; i++) printf "y%d:f32[k] = add %s%d x%d; ", i, i == 1 ? "x" : "y", i - 1, i
        printf "z:f32[k] = mul y%d %s:f32[] in (z,) }\n", n - 1, by }'
}
wide 70 1.0 >ones.jaxpr
wide 70 2.0 >twos.jaxpr
# One kernel on its own is a function; both programs have it.
cat >big.jaxpr <<'X'
{ lambda ; x:f32[1000,1000]. let y:f32[1000,1000] = tanh x; z:f32[1000,1000] = exp y in (z,) }
X
cat >main.c <<'X'
#include "lib.h"
#include <stdio.h>
#include <string.h>

static int failures;
static void want(int ok, const char *what) {
    if (!ok) printf("not so: %s\n", what), failures++;
}
int main(void) {
    float x[3] = {1, 2, 3}, y[3] = {10, 20, 30}, out[6] = {0};
    int32_t one = 1;
    want(sum(3, 3, x, y, out) == JAXCC_OK && out[0] == 11 && out[2] == 33, "sum");
    want(sum(3, 2, x, y, out) == JAXCC_DIMENSION && strstr(sum_error(), "n") && strstr(sum_error(), "m"), "sum: n = m");
    want(cut(3, 2, x, y, &one, out) == JAXCC_OK && out[0] == 12 && out[1] == 23, "cut");
    want(cut(2, 3, x, y, &one, out) == JAXCC_DIMENSION, "cut: m <= n");
    want(all(2, 3, x, y, out) == JAXCC_OK && out[2] > 20000 && out[2] < 23000, "all: no condition");
    want(all(-1, 3, x, y, out) == JAXCC_DIMENSION, "all: m >= 0");
    want(!strcmp(sum_program()->name, "sum") && sum_program()->n_in == 2, "sum_program");
    want(!strcmp(cut_program()->name, "cut") && cut_program()->n_in == 3, "cut_program");
    want(!strcmp(all_program()->dims[0], "m") && !strcmp(all_program()->in[0].name, "sum"), "all_program");
    const void *in[70];
    void *to[1] = {out};
    int64_t k = 3;
    for (int i = 0; i < 70; i++) in[i] = i ? y : x;
    want(ones_program()->call(&k, in, to) == JAXCC_OK && out[0] == 691, "ones");
    want(twos_program()->call(&k, in, to) == JAXCC_OK && out[0] == 1382, "twos");
    in[69] = NULL;
    want(twos_program()->call(&k, in, to) == JAXCC_ARGUMENT && strstr(twos_error(), "x69"), "twos: NULL");
    return failures != 0;
}
X
build_all() {
    "$build/tests/programs" lib.so sum=sum.jaxpr cut=cut.jaxpr all=all.jaxpr ones=ones.jaxpr twos=twos.jaxpr first=big.jaxpr \
        second=big.jaxpr
}
calls() { cc -std=c99 -Wall -Wextra -Werror main.c lib.so -Wl,-rpath,. -o main && ./main; }
# Each program writes what it writes alone.
header() {
    jaxcc cut.jaxpr --emit=header -o cut.h || return
    sed -n '/^\/\* cut$/,/^const jaxcc_program \*cut_program/p' cut.h >one
    sed -n '/^\/\* cut$/,/^const jaxcc_program \*cut_program/p' lib.h | cmp - one && [ "$(wc -l <one)" -gt 5 ]
}
exports() { [ "$(nm -D --defined-only lib.so | wc -l)" = 21 ]; } # NAME, NAME_error, NAME_program of seven
listed() { [ "$(jaxcc-run --info lib.so | grep -cE '^(sum|cut|all|ones|twos|first|second)\b')" = 7 ]; }
# Equal kernels and what the runtime gives are there once: the second costs its entry alone.
shared() {
    "$build/tests/programs" one.so first=big.jaxpr && "$build/tests/programs" two.so first=big.jaxpr second=big.jaxpr || return
    code() { size -A "$1" | awk '$1 == ".text" { print $2 }'; }
    [ $(($(code two.so) - $(code one.so))) -lt 700 ] || { size -A one.so two.so; return 1; }
}
try "seven programs compile" build_all
try "each has its own conditions and errors" calls
try "the header declares each" header
try "nothing else is exported" exports
try "the notes list all" listed
try "equal code is shared" shared
finish
