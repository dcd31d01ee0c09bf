#!/bin/sh
# reads.sh BUILD: backwards, an iteration that reads w[i] adds to the cotangent of w in place, however deep in branches, loops and segments the
# read is: 5,000 iterations with a w thirty times as long take less than ten times the time.
. "$(dirname "$0")/try.sh"
cd "$work" || exit 1
# read_at N: d from w:f64[N], i and c.
read_at() {
    cat <<X
          j:i64[] = mul i 7:i64[]
          k:i64[] = rem j $1:i64[]
          b:f64[1] = dynamic_slice[slice_sizes=(1,)] w k
          s:f64[] = squeeze[dimensions=(0,)] b
          t:f64[] = mul c s
          u:f64[] = add t 0.1:f64[]
          d:f64[] = tanh u
X
}
# turn SHAPE N: how an iteration gets d from w:f64[N] c:f64[] i:i64[].
turn() {
    case $1 in
    plain) read_at "$2" ;;
    cond)
        cat <<X
      p:bool[] = lt c 0.15:f64[]
      q:i32[] = convert_element_type[new_dtype=int32 weak_type=False] p
      d:f64[] = cond[
        branches=(
          { lambda ; w:f64[$2] c:f64[] i:i64[]. let d:f64[] = mul c 0.3:f64[] in (d,) }
          { lambda ; w:f64[$2] c:f64[] i:i64[]. let
$(read_at "$2")
            in (d,) }
        )
      ] q w c i
X
        ;;
    while)
        cat <<X
      d:f64[] _:i64[] = while[
        body_jaxpr={ lambda ; w:f64[$2] i:i64[] c:f64[] m:i64[]. let
$(read_at "$2")
            n:i64[] = add m 1:i64[]
          in (d, n) }
        body_nconsts=2
        cond_jaxpr={ lambda ; c:f64[] m:i64[]. let
            few:bool[] = lt m 2:i64[]
            small:bool[] = lt c 9.0:f64[]
            go:bool[] = and few small
          in (go,) }
        cond_nconsts=0
      ] w i c 0:i64[]
X
        ;;
    scan)
        cat <<X
      is:i64[2] = iota[dimension=0 dtype=int64 shape=(2,) sharding=None]
      d:f64[] = scan[
        jaxpr={ lambda ; w:f64[$2] i:i64[] c:f64[] m:i64[]. let
$(read_at "$2")
          in (d,) }
        length=2 num_carry=1 num_consts=2 reverse=False unroll=1
      ] w i c is
X
        ;;
    esac
}
program() { # SHAPE N
    cat <<X
{ lambda ; w:f64[$2] c:f64[]. let
    is:i64[5000] = iota[dimension=0 dtype=int64 shape=(5000,) sharding=None]
    r:f64[] = scan[
      jaxpr={ lambda ; w:f64[$2] c:f64[] i:i64[]. let
$(turn "$1" "$2")
        in (d,) }
      length=5000 num_carry=1 num_consts=1 reverse=False unroll=1
    ] w c is
  in (r,) }
X
}
# The processor time of the fastest of seven calls.
cat >time.c <<'X'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define CALL(f) extern int f(const double *w, const double *c, const double *ct, double *y, double *w_ct, double *c_ct)
CALL(few);
CALL(many);
static long call(int (*f)(const double *, const double *, const double *, double *, double *, double *), long n) {
    double *w = malloc(n * sizeof *w), *w_ct = malloc(n * sizeof *w), c = 0.3, ct = 1, y, c_ct;
    long least = 0;
    for (long i = 0; i < n; i++) w[i] = 1 + i % 3;
    for (int k = 0; k < 7; k++) {
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        if (f(w, &c, &ct, &y, w_ct, &c_ct)) exit(1);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        long us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 + 1;
        if (!k || us < least) least = us;
    }
    free(w), free(w_ct);
    return least;
}
int main(void) {
    long one = call(few, 10000), more = call(many, 300000);
    printf("%ld us, 30 times as long: %ld us\n", one, more);
    return more >= 10 * one;
}
X
grows() { # SHAPE OPTION
    for n in few many; do
        [ $n = few ] && program "$1" 10000 >$n.jaxpr || program "$1" 300000 >$n.jaxpr
        jaxcc --vjp "$2" --name=$n $n.jaxpr -o $n.so || return
    done
    cc -O1 time.c few.so many.so -Wl,-rpath,. -o time && timeout 100 ./time
}
for shape in plain cond while scan; do
    for option in --remat=none --remat=sqrt --remat=levels:3; do succeeds grows $shape $option; done
done
succeeds grows while --tape=bound:3
finish
