#!/bin/sh
# remat.sh BUILD: --remat: the memory that loops take for the backward part, the numbers, effects, what is refused; a loop for which there is no memory.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# Rows of 8 KiB. scan T: as many turns as the number T; while.jaxpr: as many as the input n.
scan() {
    cat <<X
{ lambda ; x:f64[1024]. let
    y:f64[1024] = scan[
      jaxpr={ lambda ; c:f64[1024]. let d:f64[1024] = sin c in (d,) }
      length=$1 linear=(False,) num_carry=1 num_consts=0 reverse=False unroll=1
    ] x
  in (y,) }
X
}
# loop Y F N X: the equation of Y, which F gives of X after N turns.
loop() {
    cat <<X
    $1:f64[1024] _:i64[] = while[
      body_jaxpr={ lambda ; c:f64[1024] i:i64[]. let d:f64[1024] = $2 c; j:i64[] = add i 1:i64[] in (d, j) }
      body_nconsts=0
      cond_jaxpr={ lambda ; n:i64[] c:f64[1024] i:i64[]. let b:bool[] = lt i n in (b,) }
      cond_nconsts=1
    ] $3 $4 0:i64[]
X
}
{ echo '{ lambda ; x:f64[1024] n:i64[]. let' && loop y sin n x && echo '  in (y,) }'; } >while.jaxpr
# A loop of n turns, then one of m, each with its stack.
{ echo '{ lambda ; x:f64[1024] n:i64[] m:i64[]. let' && loop y sin n x && loop z cos m y && echo '  in (z,) }'; } >two.jaxpr
workspace() { # KEEP T: in bytes
    scan "$2" >scan.jaxpr && jaxcc -O0 --vjp --remat="$1" scan.jaxpr -o scan.so && jaxcc-run --info scan.so | sed -n 's/.*workspace \([0-9]*\) bytes.*/\1/p'
}
# As T grows by 100: none by 100, sqrt by 10, levels:3 by less.
of_scans() {
    none=$(workspace none 100) none2=$(workspace none 10000) sqrt=$(workspace sqrt 100) sqrt2=$(workspace sqrt 10000)
    levels2=$(workspace levels:3 10000)
    echo "none: $none and $none2; sqrt: $sqrt and $sqrt2; levels:3: $levels2"
    [ "$none2" -gt $((none * 90)) ] && [ "$sqrt2" -lt $((sqrt * 11)) ] && [ "$sqrt2" -gt $((sqrt * 8)) ] && [ "$levels2" -lt "$sqrt2" ]
}
# KiB of memory that a call touches beyond those before it; the sum of what it returns.
cat >measure.c <<'X'
#include "sqrt.h"
#include "none.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long most(void) {
    char line[200];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %ld", &kib);
    if (f) fclose(f);
    return kib;
}
int main(int argc, char **argv) {
    static double x[1024], ct[1024], y[1024], g[1024];
    int64_t n = atoll(argv[2]), none = 0;
    for (int i = 0; i < 1024; i++) x[i] = 0.001 * i, ct[i] = 1;
    int (*f)(const double *, const int64_t *, const double *, double *, double *) = argv[1][0] == 's' ? back_sqrt : back_none;
    double sum = 0;
    if (f(x, &none, ct, y, g)) return 1;
    long before = most();
    if (f(x, &n, ct, y, g)) return 1;
    for (int i = 0; i < 1024; i++) sum += y[i] + g[i];
    printf("%ld %.9g\n", most() - before, sum);
    return argc != 3;
}
X
of_whiles() {
    for way in none sqrt; do jaxcc --vjp --remat=$way --name=back_$way while.jaxpr -o $way.so || return; done
    cc -O1 measure.c sqrt.so none.so -Wl,-rpath,. -o measure || return
    few=$(timeout 60 ./measure sqrt 100) many=$(timeout 60 ./measure sqrt 10000) all=$(timeout 60 ./measure none 10000)
    echo "KiB, sum: $few; $many; $all"
    [ "${many% *}" -lt $((${few% *} * 14 + 500)) ] && [ "${all% *}" -gt 70000 ] && [ "${many#* }" = "${all#* }" ]
}
# Eight levels: the numbers of none, in a program that grows as the square of the levels or so.
of_levels() {
    jaxcc --vjp --remat=levels:8 --name=back_sqrt while.jaxpr -o sqrt.so && cc -O1 measure.c sqrt.so none.so -Wl,-rpath,. -o levels || return
    for n in 0 1 5 127 128 1000; do
        few=$(timeout 60 ./levels sqrt $n) all=$(timeout 60 ./levels none $n)
        [ "${few#* }" = "${all#* }" ] || { echo "$n: $few; $all"; return 1; }
    done
    for l in 2 8; do jaxcc --vjp --remat=levels:$l while.jaxpr -o levels$l.jaxpr || return; done
    ls -l levels?.jaxpr
    [ "$(wc -c <levels8.jaxpr)" -lt $((100 * $(wc -c <levels2.jaxpr))) ]
}
# refused TEXT OPTION
refused() {
    jaxcc --vjp "$2" while.jaxpr -o no.so >out 2>&1
    [ $? = 2 ] && grep -qF -- "$1" out && [ ! -e no.so ] || { cat out; return 1; }
}
# The second loop has no room: the status, the place, and no memory of the first is lost.
cat >ends.c <<'X'
#include "two.h"
#include <string.h>
int main(void) {
    static double x[1024], y[1024];
    const int64_t n = 5, turns = INT64_C(1234567890123);
    static double g[1024];
    return two(x, &n, &turns, x, y, g) != JAXCC_MEMORY ||
           strcmp(two_error(), "two.jaxpr:8:27: while: no memory for 1234567890123 turns of 8192 bytes; see --remat=sqrt");
}
X
cat >hint.c <<'X'
#include "hint.h"
#include <stdio.h>
int main(void) {
    static double x[1024], y[1024], g[1024];
#ifdef TURNS
    const int64_t n = TURNS;
    int status = hint(x, &n, x, y, g);
#else
    int status = hint(x, x, y, g);
#endif
    puts(hint_error());
    return status != JAXCC_MEMORY;
}
X
# hinted TEXT CC-OPTION JAXCC-ARGUMENTS...: the whole error of a call without memory
hinted() {
    text=$1 define=$2
    shift 2
    jaxcc --vjp --name=hint "$@" -o hint.so && cc $define hint.c hint.so -Wl,-rpath,. -o hint && [ "$(timeout 60 ./hint)" = "$text" ] || { ./hint; return 1; }
}
while_place=while.jaxpr:2:27:
after_sqrt() { hinted "$while_place while: no memory for 2147483648 rows of 8192 bytes; see --remat=levels:3" -DTURNS=4611686018427387904 --remat=sqrt while.jaxpr; }
of_scan() {
    none=$(workspace none 9000000000000) &&
        hinted "no memory for a workspace of $none bytes; see --remat=sqrt" -DSCAN -O0 scan.jaxpr
}
no_memory() { jaxcc --vjp -march=x86-64-v3 two.jaxpr -o two.so && cc ends.c two.so -Wl,-rpath,. -o ends && timeout 60 ./ends; }
no_leak() { timeout 100 valgrind -q --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=9 ./ends; }
# A loop of n turns, in each of which another runs; both print, once, whatever is computed again.
cat >prints.jaxpr <<'X'
{ lambda ; x:f64[] n:i64[]. let
    _:i64[] y:f64[] = while[
      body_jaxpr={ lambda ; x:f64[] i:i64[] c:f64[]. let
          d:f64[] = while[
            body_jaxpr={ lambda ; x:f64[] c:f64[]. let
                d:f64[] = mul c 0.5:f64[]
                debug_print[fmt=in {} has_placeholders=True in_tree=PyTreeDef(((*,), {}))] d
                e:f64[] = mul d x
              in (e,) }
            body_nconsts=1
            cond_jaxpr={ lambda ; c:f64[]. let b:bool[] = gt c 1.0:f64[] in (b,) }
            cond_nconsts=0
          ] x c
          debug_print[fmt=out {} has_placeholders=True in_tree=PyTreeDef(((*,), {}))] d
          j:i64[] = add i 1:i64[]
          e:f64[] = sin d
          f:f64[] = mul 3.0:f64[] e
        in (j, f) }
      body_nconsts=1
      cond_jaxpr={ lambda ; n:i64[] i:i64[] c:f64[]. let b:bool[] = lt i n in (b,) }
      cond_nconsts=1
    ] n x 0:i64[] 5.0:f64[]
  in (y,) }
X
cat >shows.c <<'X'
#include "prints.h"
#include <stdio.h>
int main(void) {
    const double x = 0.9, ct = 1;
    const int64_t n = 3;
    double y, g;
    (void)ct, (void)g;
    return f(&x, &n, MORE) || fprintf(stderr, "%.12g\n", y) < 0;
}
X
# shown MORE OPTION...: what it prints
shown() {
    more=$1
    shift
    jaxcc --verify "$@" --name=f prints.jaxpr -o prints.so && cc -DMORE="$more" shows.c prints.so -Wl,-rpath,. -o shows && timeout 20 ./shows
}
prints_once() {
    shown "&y" >want 2>&1 || return
    for way in --remat=none --remat=all --remat=dots --remat=sqrt --remat=levels:3 --tape=bound:20; do
        shown "&ct,&y,&g" --vjp $way >got 2>&1 && cmp want got || return
    done
    [ "$(grep -c in want)" -gt 3 ] && [ "$(grep -c out want)" = 3 ]
}
# What has an effect and a result: the inner loop cannot be counted; a loop alone stores all that it needs.
runs_once() {
    sed 's/debug_print.fmt=in.*/_:i64[] = ffi_call[has_side_effect=True result_avals=(ShapedArray(int64[]),) target_name=log_turn]/' prints.jaxpr >once.jaxpr
    for way in none all sqrt; do
        ! jaxcc --vjp --remat=$way --ffi log_turn=l.so:f once.jaxpr -o once.so 2>out || return
        grep -q ":4:21: error: .* would run ffi_call, which has effects, twice; see --tape=bound" out || { cat out; return 1; }
    done
    jaxcc --vjp --tape=bound:20 --ffi log_turn=l.so:f once.jaxpr -o once.o || return
    sed 's/let d:f64.1024. = sin c;/& _:i64[] = ffi_call[has_side_effect=True result_avals=(ShapedArray(int64[]),) target_name=log_turn];/' while.jaxpr >one.jaxpr
    for way in none all sqrt levels:3; do jaxcc --verify --vjp --remat=$way --ffi log_turn=l.so:f one.jaxpr -o once.o || return; done
}
try "the workspace of a scan" of_scans
try "the memory of a while" of_whiles
try "eight levels" of_levels
try "no such way" refused "--remat=some: it is none, all, dots, sqrt, or levels:L" --remat=some
try "no levels" refused "--remat=levels:0: it is none" --remat=levels:0
try "too many levels" refused "a number L from 1 to 8" --remat=levels:9
try "prints of loops within loops" prints_once
try "effects with results" runs_once
try "no memory for a while" no_memory
try "no memory after --remat=sqrt" after_sqrt
try "no memory for a scan" of_scan
! command -v valgrind >/dev/null || try "what ends early frees its memory" no_leak
finish
