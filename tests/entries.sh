#!/bin/sh
# entries.sh BUILD: --entry and --linearize: several functions of one program in one library, called from C; what they share lies in it once.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# f(w, x) = sum of sin(w) * x * x; n = m must hold.
cat >f.jaxpr <<'X'
{ lambda ; w:f64[n] x:f64[m]. let
    s:f64[n] = sin w
    p:f64[n] = mul s x
    q:f64[n] = mul p x
    r:f64[] = reduce_sum[axes=(0,)] q
  in (r,) }
X
# x + sin x + 2, again and again until it is at least 10.
cat >until.jaxpr <<'X'
{ lambda ; x:f64[]. let
    y:f64[] = while[
      cond_nconsts=0 cond_jaxpr={ lambda ; x:f64[]. let b:bool[] = lt x 10.0:f64[] in (b,) }
      body_nconsts=0 body_jaxpr={ lambda ; x:f64[]. let y:f64[] = sin x; z:f64[] = add x y; w:f64[] = add z 2.0:f64[] in (w,) }
    ] x
  in (y,) }
X
cat >main.c <<'X'
#include "f.h"
#include "until.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;
static void want(int ok, const char *what) {
    if (!ok) printf("not so: %s\n", what), failures++;
}
static int near(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }
int main(void) {
    const double w[2] = {0.5, 1.5}, x[2] = {2, 3}, t[2] = {1, 10}, zero[2] = {0, 0};
    double y, g[2], h[2], by[2];
    want(f(2, 2, w, x, &y) == JAXCC_OK && near(y, 4 * sin(0.5) + 9 * sin(1.5)), "f");
    want(vg(2, 2, w, x, h, g) == JAXCC_OK && near(h[0], y) && near(g[1], 9 * cos(1.5)), "vg");
    want(hvp(2, 2, w, x, t, zero, g, h) == JAXCC_OK && near(g[0], 4 * cos(0.5)) && near(h[1], -90 * sin(1.5)), "hvp");
    want(f(2, 3, w, x, &y) == JAXCC_DIMENSION && strstr(f_error(), "n") && strstr(f_error(), "m"), "f: n = m");
    want(!strcmp(hvp_program()->name, "hvp") && !strcmp(hvp_program()->in[2].name, "w_t"), "hvp_program");

    double start = 1, slope = 1, end = 1, one = 1;
    int64_t turns;
    jaxcc_array factors;
    for (; end < 10; end += sin(end) + 2) slope *= 1 + cos(end);
    want(until_fwd(&start, &y, &turns, &factors) == JAXCC_OK && near(y, end), "until_fwd");
    want(factors.rank == 1 && factors.dims[0] == turns, "a residual of as many rows as the loop ran");
    want(until_lin(&turns, factors.data, &one, g) == JAXCC_OK && near(g[0], slope), "until_lin");
    want(back(&start, &one, &y, by) == JAXCC_OK && near(by[0], slope), "back");
    factors.release(&factors);
    return failures != 0;
}
X
build_f() { jaxcc f.jaxpr --entry 'vg:--value-and-grad=0' --entry hvp:' --grad  --jvp ' -o f.so; }
build_until() { jaxcc until.jaxpr --linearize --entry=back:--vjp -o until.so; }
calls() { cc -std=c99 -Wall -Wextra -Werror main.c f.so until.so -Wl,-rpath,. -lm -o main && timeout 60 ./main; }
exports() { [ "$(nm -D --defined-only f.so | wc -l)" = 9 ]; } # NAME, NAME_error, NAME_program of three
printed() { jaxcc f.jaxpr --linearize --entry h:--vjp --emit=jaxpr >out && [ "$(grep -c '^{ lambda' out)" = 3 ]; }
# The constants are there once.
shared() {
    model="$root/examples/classify.jaxpr --consts=$root/examples/classify.consts.npz --name=f"
    jaxcc $model -o one.so && jaxcc $model --vjp -o two.so && jaxcc $model --entry g:--vjp -o both.so || return
    # The constants have 5004 bytes.
    data() { size -A "$1" | awk '$1 == ".rodata" { print $2 }'; }
    [ "$(data both.so)" -lt $(($(data two.so) + 2000)) ] && [ "$(data one.so)" -gt 5004 ] || { size -A one.so two.so both.so; return 1; }
}
# refused STATUS TEXT ARGUMENTS...: no library, and a message with TEXT.
refused() {
    status=$1 text=$2
    shift 2
    jaxcc "$@" -o no.so >out 2>&1
    [ $? = "$status" ] && grep -qF -- "$text" out && [ ! -e no.so ] || { cat out; return 1; }
}
# Of at most N iterations: the same numbers, or JAXCC_CHECK.
cat >bound.c <<'X'
#include "until.h"
#include "four.h"
#include "hundred.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    double start = 1, one = 1, y, by, same, dy;
    if (back(&start, &one, &y, &by) || hundred(&start, &one, &same, &dy) || same != y || fabs(dy - by) > 1e-12) return 1;
    return four(&start, &one, &y, &by) != JAXCC_CHECK ||
           strcmp(four_error(), "until.jaxpr:2:15: while ran more than 4 turns (--tape=bound:4)");
}
X
bounded() {
    jaxcc until.jaxpr --vjp --tape=bound:4 --name=four -o four.so && jaxcc until.jaxpr --vjp --tape bound:100 --name=hundred -o hundred.so &&
        cc -std=c99 -Wall -Wextra -Werror bound.c until.so four.so hundred.so -Wl,-rpath,. -lm -o bound && timeout 60 ./bound
}
try "three functions of a program compile" build_f
try "a linearized program and its vjp compile" build_until
try "C calls them" calls
try "nothing else is exported" exports
try "--emit=jaxpr prints all" printed
try "constants are shared" shared
try "--tape=bound" bounded
try "a bad tape" refused 2 "it is count, or bound:N" f.jaxpr --vjp --tape=bound:0
try "no name" refused 2 "not NAME:FLAGS" f.jaxpr --entry=--vjp
try "no value" refused 2 "'--entry' wants NAME:FLAGS" f.jaxpr --entry --vjp
try "no tape" refused 2 "'--tape' wants TAPE" f.jaxpr --tape --vjp
try "a constant of the header" refused 2 "no library can export the name 'JAXCC_OK'; write another one in --entry" f.jaxpr --entry JAXCC_OK:--jvp
try "--name of a constant of the header" refused 2 "name 'JAXCC_OK'; --name gives another" f.jaxpr --name=JAXCC_OK --emit=header
try "a type of the header" refused 2 "name 'jaxcc_body'; --name gives another" f.jaxpr --name=jaxcc_body --emit=header
try "a symbol of libm" refused 1 "a symbol of libc or libm; write another one in --entry" f.jaxpr --entry sin:--jvp -Werror=name
try "no C name" refused 2 "not a name" f.jaxpr --entry 2g:--vjp
try "no transformation" refused 2 "'-O3' is no transformation" f.jaxpr --entry 'g:--vjp -O3'
try "a misspelt one" refused 2 "'--vpj' is no transformation; did you mean '--vjp'?" f.jaxpr --entry 'g:--vpj'
try "one like no other" refused 2 "'--xyzzy' is no transformation" f.jaxpr --entry 'g:--xyzzy'
try "a bad way of branches" refused 2 "it is skip, branch or select" f.jaxpr --vmap=0 --vmap-cond=all
try "an option for all" refused 2 "'--remat=all' is no transformation; such options are given outside --entry" f.jaxpr --entry 'g:--vjp --remat=all'
try "a value for none" refused 2 "'--jvp' takes no value" f.jaxpr --entry 'g:--jvp=1'
try "a name twice" refused 2 "would export the name 'g'" f.jaxpr --entry g:--vjp --entry g:--jvp
try "the name of an error function" refused 2 "would export the name 'f_error'" f.jaxpr --entry f_error:--vjp
try "the name of a half" refused 2 "would export the name 'f_lin'" f.jaxpr --linearize --entry f_lin:--vjp
try "--linearize twice" refused 2 "must be the last transformation, but is given twice" f.jaxpr --linearize --linearize
try "something after --linearize" refused 2 "must be the last" f.jaxpr --linearize --jvp
try "a flag that does not fit" refused 1 "for --grad=7 of --entry g" f.jaxpr --entry g:--grad=7
finish
