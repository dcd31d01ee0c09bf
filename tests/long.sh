#!/bin/sh
# long.sh BUILD MODE: long programs and many arguments: time and memory grow with their length, not its square. Each program is written
# by awk, which computes its results too.
. "$(dirname "$0")/try.sh"
cp runtime/jaxcc.h "$work"
cd "$work" || exit 1
# Many times what these programs need, a fraction of what the square of their length would: there 20,000 equations took minutes
# and 14 GB. The sanitizers reserve more than there is.
SECONDS_EACH=60
KILOBYTES=1500000
[ "$mode" = asan ] && SECONDS_EACH=300
compile() {
    (
        [ "$mode" = asan ] || ulimit -v $KILOBYTES
        timeout $SECONDS_EACH jaxcc "$@"
    ) >log 2>&1
}

# host LIB NAME N: calls a program of elements of 32 bits, its inputs scalars or f32[2]; element k of input i is i modulo 17 + k / 2.
# Prints the elements of its results, or its error where input N is NULL.
cat >host.c <<'X2'
#include "jaxcc.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static size_t elements(const jaxcc_type *t) {
    size_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= strtoul(t->extents[d], NULL, 10);
    return n;
}
int main(int argc, char **argv) {
    void *lib = dlopen(argv[1], RTLD_NOW);
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s_program", argv[2]);
    const jaxcc_program *(*program)(void) = (const jaxcc_program *(*)(void))dlsym(lib, symbol);
    const jaxcc_program *p = program();
    const void **in = calloc((size_t)p->n_in + 1, sizeof *in);
    void **out = calloc((size_t)p->n_out + 1, sizeof *out);
    typedef union { float f; int i; } element;
    element *x = calloc((size_t)p->n_in + 1, 2 * sizeof *x);
    for (int i = 0; i < p->n_in; i++) {
        for (int k = 0; k < 2; k++)
            if (p->in[i].dtype[0] == 'f') x[2 * i + k].f = (float)(i % 17) + (float)k / 2; else x[2 * i + k].i = i % 17;
        in[i] = argc > 3 && atoi(argv[3]) == i ? NULL : &x[2 * i];
    }
    for (int i = 0; i < p->n_out; i++) out[i] = calloc(elements(&p->out[i]) + 1, sizeof *x);
    if (p->call(NULL, in, out)) return puts(p->error()), 1;
    for (int i = 0; i < p->n_out; i++)
        for (size_t k = 0; k < elements(&p->out[i]); k++)
            if (p->out[i].dtype[0] == 'f') printf("%.9g\n", ((element *)out[i])[k].f); else printf("%d\n", ((element *)out[i])[k].i);
}
X2
cc -w -o host host.c -ldl >log 2>&1 || stop "host.c does not compile"
# near: the two lists of numbers agree to 1e-5.
near() {
    paste "$1" "$2" | awk '{ d = $1 - $2; if (NF != 2 || d > 1e-5 || d < -1e-5) bad = 1 } END { exit bad || NR == 0 }'
}
# holds NAME: NAME.jaxpr compiles, and gives NAME.want.
holds() {
    compile "$1.jaxpr" -o "$1.so"
    count $? "$1 compiles in $SECONDS_EACH s and $KILOBYTES KiB"
    ./host "./$1.so" "$1" >"$1.got" 2>>log && near "$1.got" "$1.want"
    count $? "what $1 computes"
}

# A chain of n equations of f32 scalars from v0 on, and its value.
chain='function chain(n, i) { for (i = 0; i < n; i++)
    print "v" i + 1 ":f32[] = " (i % 3 == 0 ? "sin v" i : (i % 3 == 1 ? "add" : "mul") " v" i " 1.01:f32[]") }
function value(v, n, i) { for (i = 0; i < n; i++) v = i % 3 == 0 ? sin(v) : i % 3 == 1 ? v + 1.01 : v * 1.01; return v }'

awk "$chain"'BEGIN { n = 20000; print "{ lambda ; v0:f32[]. let"; chain(n); print "in (v" n ",) }"
    printf "%.9g\n", value(0, n) >"scalars.want" }' >scalars.jaxpr
holds scalars

# A long program is made as several objects, by as many threads as there are CPUs: the library has the same bytes on one CPU, also with code
# for two levels, with lines, and unoptimised, and exports its interface alone.
awk "$chain"'BEGIN { n = 8000; print "{ lambda ; v0:f32[]. let"; chain(n); print "in (v" n ",) }"
    printf "%.9g\n", value(0, n) >"shards.want" }' >shards.jaxpr
holds shards
objects() { jaxcc -v "$@" shards.jaxpr -o shards.so 2>&1 | tr ' ' '\n' | grep -c '/jaxcc-[0-9]*-[0-9]*\.tmp$'; }
several() {
    for options in -O0 -O2 '-O3 -g' '-march=x86-64-v3,x86-64-v4'; do
        [ "$(objects $options)" -gt 2 ] && mv shards.so all.so || return 1 # one more is the library
        taskset -c 0 jaxcc $options shards.jaxpr -o shards.so && cmp shards.so all.so || return 1
        [ "$(nm -D --defined-only shards.so | awk '{ print $3 }' | tr '\n' ' ')" = 'shards shards_error shards_program ' ] || return 1
    done
}
try "several objects of one library, on one CPU and on all" several

# Integers, comparisons and choices; every value of the first half is read in the second one.
awk 'BEGIN { n = 4000; print "{ lambda ; x:i32[] a0:i32[]. let"; a[0] = 1
    for (i = 0; i < n; i++) {
        print "m" i ":i32[] = mul a" i " 5:i32[] s" i ":i32[] = add m" i " " i ":i32[] a" i + 1 ":i32[] = rem s" i " 10007:i32[]"
        a[i + 1] = (a[i] * 5 + i) % 10007 }
    print "b0:i32[] = add x 0:i32[]"
    for (i = 0; i < n; i++) {
        print "p" i ":bool[] = lt b" i " a" n - i " c" i ":i32[] = sub b" i " a" i " d" i ":i32[] = add b" i " a" n - i
        print "b" i + 1 ":i32[] = select_n p" i " c" i " d" i
        b = b < a[n - i] ? b + a[n - i] : b - a[i] }
    print "in (b" n ",) }"; print b >"wide.want" }' >wide.jaxpr
holds wide

# Loops and branches whose bodies are long, and that carry much.
awk "$chain"'BEGIN { n = 3000; print "{ lambda ; k0:f32[] k1:f32[]. let"
    print "s:f32[] = scan[_split_transpose=False jaxpr={ lambda ; v0:f32[]. let"; chain(n)
    print "in (v" n ",) } length=2 linear=(False,) num_carry=1 num_consts=0 reverse=False unroll=1] k0"
    print "i:i32[] w:f32[] = while[body_jaxpr={ lambda ; i:i32[] v0:f32[]. let"; chain(n)
    print "j:i32[] = add i 1:i32[] in (j, v" n ") } body_nconsts=0 cond_jaxpr={ lambda ; i:i32[] v:f32[]. let"
    print "p:bool[] = lt i 3:i32[] in (p,) } cond_nconsts=0] 0:i32[] k1"
    print "c:f32[] = cond[branches=( { lambda ; v0:f32[]. let in (v0,) } { lambda ; v0:f32[]. let"; chain(n)
    print "in (v" n ",) } )] i w in (s, w, c) }"
    s = value(value(0, n), n); w = value(value(value(1, n), n), n)
    printf "%.9g\n%.9g\n%.9g\n", s, w, value(w, n) >"loops.want" }' >loops.jaxpr
holds loops
awk 'BEGIN { n = 300; printf "{ lambda ; "; for (i = 0; i < n; i++) printf "a%d:f32[] ", i
    print ". let"; for (i = 0; i < n; i++) printf "r%d:f32[] ", i
    printf "= scan[_split_transpose=False jaxpr={ lambda ; "; for (i = 0; i < n; i++) printf "b%d:f32[] ", i
    print ". let"; for (i = 0; i < n; i++) { print "c" i ":f32[] = mul b" (i + 1) % n " 0.5:f32[] d" i ":f32[] = add c" i " b" i; x[i] = i % 17 }
    printf "in ("; for (i = 0; i < n; i++) printf "d%d, ", i
    printf ") } length=3 linear=("; for (i = 0; i < n; i++) printf "False, "
    printf ") num_carry=%d num_consts=0 reverse=False unroll=1] ", n; for (i = 0; i < n; i++) printf "a%d ", i
    printf "in ("; for (i = 0; i < n; i++) printf "r%d, ", i; print ") }"
    for (t = 0; t < 3; t++) { for (i = 0; i < n; i++) y[i] = x[(i + 1) % n] * 0.5 + x[i]; for (i = 0; i < n; i++) x[i] = y[i] }
    for (i = 0; i < n; i++) printf "%.9g\n", x[i] >"carries.want" }' >carries.jaxpr
holds carries

# A function of many operands and results, arrays and scalars, that stays one function and is called four times; a loop calls it too.
awk 'function types(c, k) { for (k = 0; k < n; k++) printf "%s%d:f32[%s] ", c, k, k % 2 ? "" : "2" }
    function names(c, by, k) { for (k = 0; k < n; k++) printf "%s%d%s", c, k, by }
    function call(to, from) { types(to); printf "= jit[name=f jaxpr=f] "; names(from, " "); print "" }
    BEGIN { n = 1500; printf "let f = { lambda ; "; types("a"); print ". let"
    for (k = 0; k < n; k++) { t = k % 2 ? "" : "2"
        print "h" k ":f32[" t "] = mul a" k " 0.5:f32[] u" k ":f32[" t "] = add h" k " a" (k + 2) % n }
    printf "in ("; names("u", ", "); printf ") } in\n{ lambda ; "; types("a"); print ". let"
    call("b", "a"); call("c", "b"); call("d", "c"); call("e", "d"); types("r")
    printf "= scan[_split_transpose=False jaxpr={ lambda ; "; types("a"); print ". let"; call("x", "a"); printf "in ("; names("x", ", ")
    printf ") } length=2 linear=("; for (k = 0; k < n; k++) printf "False,"
    printf ") num_carry=%d num_consts=0 reverse=False unroll=1] ", n; names("e", " ")
    printf "in ("; names("r", ", "); print ") }"
    for (k = 0; k < n; k++) { x[k, 0] = k % 17; x[k, 1] = k % 17 + 0.5 }
    for (turn = 0; turn < 6; turn++) {
        for (k = 0; k < n; k++) for (i = 0; i < 2; i++) y[k, i] = x[k, i] / 2 + x[(k + 2) % n, i]
        for (k = 0; k < n; k++) for (i = 0; i < 2; i++) x[k, i] = y[k, i] }
    for (k = 0; k < n; k++) for (i = 0; i < 2 - k % 2; i++) printf "%.9g\n", x[k, i] >"called.want" }' >called.jaxpr
holds called

# Concatenations of many pieces: of arguments, and of scalars as jnp.stack makes it of them.
for n in 1000 2000 3000 4000; do
    awk -v n=$n 'BEGIN { printf "{ lambda ; "; for (i = 0; i < n; i++) printf "a%d:f32[2] ", i
        printf ". let r:f32[%d] = concatenate[dimension=0]", 2 * n
        for (i = 0; i < n; i++) { printf " a%d", i; printf "%g\n%g\n", i % 17, i % 17 + 0.5 >"pieces" n ".want" }
        print " in (r,) }" }' >pieces$n.jaxpr
    holds pieces$n
    awk -v n=$n 'BEGIN { printf "{ lambda ; "; for (i = 0; i < n; i++) printf "a%d:f32[] ", i; print ". let"
        for (i = 0; i < n; i++) print "b" i ":f32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,) sharding=None] a" i
        printf "r:f32[%d] = concatenate[dimension=0]", n
        for (i = 0; i < n; i++) { printf " b%d", i; print i % 17 >"stack" n ".want" }
        print " in (r,) }" }' >stack$n.jaxpr
    holds stack$n
done
# Of computed ones, each by an equation of its own.
awk 'BEGIN { n = 4000; printf "{ lambda ; "; for (i = 0; i < n; i++) printf "a%d:f32[2] ", i; print ". let"
    for (i = 0; i < n; i++) print "b" i ":f32[2] = sqrt a" i
    printf "r:f32[%d] = concatenate[dimension=0]", 2 * n
    for (i = 0; i < n; i++) { printf " b%d", i; printf "%.9g\n%.9g\n", sqrt(i % 17), sqrt(i % 17 + 0.5) >"computed.want" }
    print " in (r,) }" }' >computed.jaxpr
holds computed

# Many arguments: by program()->call, then by NAME itself, with as many parameters.
awk 'BEGIN { n = 2000; printf "{ lambda ; "; for (i = 0; i < n; i++) printf "a%d:f32[] ", i; print ". let"
    for (i = 0; i < n; i++) { print "b" i ":f32[] = mul a" i " 2.0:f32[] c" i ":f32[] = add b" i " a" (i * 7 + 1) % n
        print i % 17 * 2 + (i * 7 + 1) % n % 17 >"arguments.want" }
    printf "in ("; for (i = 0; i < n; i++) printf "c%d, ", i; print ") }" }' >arguments.jaxpr
holds arguments
for i in 0 5 6 1999; do
    ./host ./arguments.so arguments $i >log 2>&1
    [ $? = 1 ] && grep -q "argument 'a$i' is NULL" log
    count $? "argument $i is NULL"
done
awk 'BEGIN { n = 2000; print "#include \"arguments.h\"\n#include <stdio.h>\nfloat a[" n "], c[" n "];\nint main(void) {"
    print "for (int i = 0; i < " n "; i++) a[i] = i % 17;\nif (arguments("
    for (i = 0; i < n; i++) printf "a + %d, ", i; for (i = 0; i < n; i++) printf "c + %d%s", i, i < n - 1 ? ", " : "))\n"
    print "return 1;\nfor (int i = 0; i < " n "; i++) printf(\"%g\\n\", c[i]); }" }' >direct.c
cc -w -o direct direct.c ./arguments.so "-Wl,-rpath,$work" >log 2>&1 && ./direct >direct.got 2>>log && near direct.got arguments.want
count $? "a call with 4,000 parameters"
# Sums of 40 terms whose lanes lie apart are a loop: written out they are 400 KB, compiled in 17 s.
cat >apart.jaxpr <<'X3'
{ lambda ; a:f32[n,40] b:bool[]. let
    c:f32[n,40] = pad[padding_config=((0, 0, 0), (1, -1, 0))] a 1.0:f32[]
    d:f32[n,40] = add a c
    e:f32[n,40] = pad[padding_config=((0, 0, 0), (-1, 1, 0))] a 2.0:f32[]
    f:f32[n,40] = add d e
    g:f32[n + 1,40] = reduce_window[
      base_dilation=(1, 1)
      consts=()
      jaxpr={ lambda ; h:f32[] i:f32[]. let j:f32[] = add h i in (j,) }
      padding=((1, 1), (0, 0))
      window_dilation=(1, 1)
      window_dimensions=(2, 1)
      window_strides=(1, 1)
    ] f 0.0:f32[]
    k:f32[n + 1,40] = rev[dimensions=(1,)] g
    l:f32[n + 1,40] = pad[padding_config=((1, -1, 0), (0, 0, 0))] k 1.0:f32[]
    m:f32[n + 1,40] = add k l
    n:f32[n + 1,40] = pad[padding_config=((-1, 1, 0), (0, 0, 0))] k 2.0:f32[]
    o:f32[n + 1,40] = add m n
    p:f32[n + 1] = reduce_sum[axes=(1,) out_sharding=None] o
  in (k, p) }
X3
is_short() { compile -march=x86-64-v3 apart.jaxpr -o apart.so && [ "$(wc -c <apart.so)" -lt 100000 ]; }
succeeds is_short
finish
